// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import Glibc
import HTTPWire
import Logging
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient
@testable import Proxy

/// Service that answers with the number of exchanges after asking the workers, or never if `isStuck`.
private final class Figures: LocalService {
    /// Weak reference: the workers retain this service through its listener.
    private struct Asked { weak var readings: WorkerReadings? }

    private let asked = Mutex(Asked())
    let isStuck: Bool

    init(isStuck: Bool = false) {
        self.isStuck = isStuck
    }

    func ask(_ readings: WorkerReadings) { asked.withLock { $0.readings = readings } }

    private var readings: WorkerReadings? { asked.withLock { $0.readings } }

    func answer(_ request: LocalRequest) -> LocalAnswer {
        let count = readings?.latest.begunExchanges ?? 0
        return LocalAnswer(status: 200, contentType: "text/plain", body: Array("\(count) \(request.accept)".utf8))
    }

    func later(_ request: LocalRequest) -> LaterAnswer? {
        guard request.path == "/later" else { return nil }
        return LaterAnswer(
            timeout: .seconds(10),
            begin: { done in
                guard !self.isStuck else { return }
                self.readings?.ask(done)
            }, answer: { self.answer(request) })
    }
}

@Suite("The workers asked for their figures")
struct WorkerReadingsTests {
    private func proxy(_ service: Figures, upstream: UInt16, workers: Int = 2) throws -> TestProxy {
        let local = ListenerPlan(
            name: "admin", service: .local(service), router: Router(fallback: nil), hosts: HostPolicy())
        let proxy = try TestProxy(
            workers: workers,
            ProxyPlan(
                listeners: [
                    (point: .tcp(host: "127.0.0.1", port: 0), plan: .proxy()),
                    (point: .tcp(host: "127.0.0.1", port: 0), plan: local),
                ], upstreams: [.bank(port: upstream)]))
        service.ask(proxy.server.readings)
        return proxy
    }

    private func connect(_ proxy: TestProxy) throws -> Peer {
        try Peer(port: port(of: proxy.server.descriptors[1]))
    }

    @Test("a deferred answer has the workers' readings of after its request, one answer after the other")
    func later() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Figures(), upstream: upstream.port)
        let caller = try connect(proxy)
        for number in 1...5 {
            _ = try proxy.fetch(get())
            try caller.send(get("/later", "Accept: a/b\r\nAccept: c/d;q=0.5\r\n"))
            #expect(try caller.message().body == "\(number) a/b,c/d;q=0.5")
        }
        // Two at once, with a body between them, and a third that waits for nothing.
        try caller.send(
            "GET /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc" + get("/later") + get("/now"))
        for _ in 0..<3 { #expect(try caller.message().body == "5 ") }
    }

    @Test("a caller that ends its side gets its deferred answer, and one that leaves is forgotten")
    func ended() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Figures(), upstream: upstream.port)
        let half = try connect(proxy)
        try half.send(get("/later"))
        half.finish()
        #expect(try half.message().body == "0 ")
        try half.expectEnd()
        for _ in 0..<50 {
            let gone = try connect(proxy)
            try gone.send(get("/later"))
            gone.reset()
        }
        proxy.expectNoConnections()
        #expect(try proxy.fetch(get()).body == "in")
    }

    @Test("a deferred answer whose data never arrives is sent after its timeout, and the connection goes on")
    func timeout() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Figures(isStuck: true), upstream: upstream.port)
        let caller = try connect(proxy)
        for _ in 0..<2 {
            try caller.send("GET /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc")
            proxy.pass(.milliseconds(9_999))
            #expect(!caller.hasNews)
            proxy.pass(.milliseconds(1))
            #expect(try caller.message().body == "0 ")
        }
    }

    /// Service with an answer that takes long to make, on a thread of its own, and one that is there at once.
    private struct Slow: LocalService {
        let began = Signal()
        let goesOn = Signal()

        func answer(_ request: LocalRequest) -> LocalAnswer {
            LocalAnswer(status: 200, contentType: "text/plain", body: Array("now".utf8))
        }

        func later(_ request: LocalRequest) -> LaterAnswer? {
            guard request.path == "/slow" else { return nil }
            return LaterAnswer(timeout: .seconds(10), begin: { $0() }, onThread: { inBackground($0) }) {
                began.set()
                goesOn.wait()
                return LocalAnswer(status: 200, contentType: "text/plain", body: Array("slow".utf8))
            }
        }
    }

    @Test("an answer that is made on another thread holds up no other caller of its worker, however long it takes")
    func onThread() throws {
        let slow = Slow()
        let local = ListenerPlan(
            name: "admin", service: .local(slow), router: Router(fallback: nil), hosts: HostPolicy())
        let proxy = try TestProxy(
            workers: 1,
            ProxyPlan(listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: local)], upstreams: []))
        let waiting = try Peer(port: port(of: proxy.server.descriptors[0]))
        try waiting.send(get("/slow"))
        #expect(slow.began.wait())
        let other = try Peer(port: port(of: proxy.server.descriptors[0]))
        try other.send(get("/now"))
        #expect(try other.message().body == "now")
        // Its data is there: the timeout for them makes no second answer.
        proxy.pass(.seconds(11))
        #expect(!waiting.hasNews)
        slow.goesOn.set()
        #expect(try waiting.message().body == "slow")
        try waiting.send(get("/now"))
        #expect(try waiting.message().body == "now")
    }

    @Test("a worker with a stuck loop is reported as late, with its last reading")
    func stuck() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Figures(), upstream: upstream.port, workers: 1)
        _ = try proxy.fetch(get())
        #expect(proxy.reading.late == [])
        let (began, goesOn, time) = (Signal(), Signal(), proxy.time)
        proxy.services.roster.onSomeWorker { _ in
            began.set()
            goesOn.wait()
            time.advance(by: .milliseconds(20))
        }
        #expect(began.wait())
        proxy.server.readings.ask {}
        let reading = proxy.server.readings.latest
        #expect(reading.late == [0])
        #expect(reading.begunExchanges == 1)
        goesOn.set()
        let after = proxy.reading
        #expect(after.late == [])
        #expect(after.workers[0].longestTurn == 20_000_000)
        #expect(after.workers[0].busy == 20_000_000)
    }

    @Test("refused callers are counted by reason")
    func refused() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try TestProxy(.bank(port: upstream.port), limits: WorkerLimits(callers: 1))
        let first = try proxy.connect()
        try first.send(get())
        _ = try first.message()
        #expect(try proxy.connect().message().head.hasPrefix("HTTP/1.1 503 "))
        let reading = proxy.reading
        #expect(reading.refused == [.everywhere: 1])
        #expect(reading.replies == [:])
        #expect(reading.connections == 1 && reading.acceptedConnections == 1 && reading.connectionLimit == 1)
    }
}

private struct NoThread: Error {}

@Suite("Start of the workers")
struct WorkerStartTests {
    @Test("workers that have started end if a later one cannot start, and the reason is told", arguments: [0, 1, 3])
    func failing(number: Int) throws {
        let services = ClientServices(
            gate: SharedAttemptGate(now: { 0 }), state: MemoryState(), wallClock: { 0 }, observer: LoginLog())
        let began = Notes()
        #expect(throws: NoThread.self) {
            try ProxyServer(
                services: services, workers: 4, limits: WorkerLimits(),
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            ) { name, clock, setUp in
                if name == "worker-\(number)" { throw NoThread() }
                began.add(name)
                return try EventLoopThread(name: name, clock: clock, setUp: setUp)
            }
        }
        #expect(began.all.count == number)
        // Dismissed after their threads were joined.
        #expect(services.roster.loop == nil)
    }
}
