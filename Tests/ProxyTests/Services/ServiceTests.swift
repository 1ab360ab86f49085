// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import EventLoop
import Glibc
import HTTPWire
import Logging
import Synchronization
import TestSupport
import Testing

@testable import Proxy

@Suite("Services, each with a connection that only notes what is done with it")
struct ServiceTests {
    /// Runs `body` on the thread of a loop that has no other work.
    private func onLoop(_ body: @escaping @Sendable (EventLoop) throws -> Void) throws {
        let loop = try EventLoop(clock: ManualLoopClock())
        loop.execute { [unowned loop] in
            do { try body(loop) } catch { Issue.record(error) }
        }
        // Jobs that are already queued still run.
        loop.stop()
        loop.run()
    }

    // MARK: Answers of our own

    private struct Echo: LocalService {
        func answer(_ request: LocalRequest) -> LocalAnswer {
            LocalAnswer(status: 200, contentType: "", body: Array("\(request.path)?\(request.query)".utf8))
        }

        func later(_ request: LocalRequest) -> LaterAnswer? {
            guard request.path == "/later" else { return nil }
            return LaterAnswer(timeout: .seconds(1), begin: { _ in }) {
                LocalAnswer(status: 204, contentType: "", body: [])
            }
        }
    }

    private func localAnswers(_ request: String, on loop: EventLoop) throws -> FakeConnection {
        let caller = try FakeConnection(.local(Echo()), request, on: loop)
        let service = LocalAnswers(caller, by: Echo(), log: caller.worker.log) { caller.worker.runtime.nextID() }
        service.begin()
        return caller
    }

    @Test("a local service's answer is delivered, at once or when it is made")
    func local() throws {
        try onLoop { loop in
            let now = try localAnswers("GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop)
            #expect(now.events == ["200 /a?b"])
            let later = try localAnswers("GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop)
            #expect(later.events == ["later 204"])
        }
    }

    @Test("a local service is not asked for another host, and counts nothing")
    func localRefusal() throws {
        try onLoop { loop in
            let caller = try localAnswers("GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", on: loop)
            #expect(caller.events == ["421 host-not-allowed"])
            #expect(caller.worker.counts.exchanges.count == 0)
        }
    }

    // MARK: Forwarding

    private func forwarding(
        _ request: String, on loop: EventLoop, upstream: UpstreamPlan? = .bank(port: 1),
        limits: WorkerLimits = WorkerLimits(),
        users: Set<UInt32>? = nil, _ body: (FakeConnection, Forwarding) throws -> Void
    ) throws {
        let caller = try FakeConnection(.proxy, request, on: loop, upstream: upstream, limits: limits, users: users)
        let service = Forwarding(caller, worker: caller.worker)
        service.begin()
        try body(caller, service)
        service.close()
    }

    @Test("an admitted request counts as one exchange until it ends")
    func forwards() throws {
        try onLoop { loop in
            try forwarding("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n", on: loop) {
                caller, service in
                #expect(caller.events.first == "accept")
                #expect(caller.worker.counts.exchanges.count == 1)
                #expect(service.exchange?.upstreamName == "bank")
                #expect(service.wantsBody)
                service.cancel(isAnswered: false)
                service.requestEnded()
                #expect(service.exchange == nil)
                #expect(caller.worker.counts.exchanges.count == 0)
            }
        }
    }

    @Test("the exchange of a closed connection is abandoned, and no longer counts")
    func closes() throws {
        try onLoop { loop in
            try forwarding("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop) { caller, service in
                service.close()
                #expect(caller.worker.counts.exchanges.count == 0)
                #expect(!caller.events.contains("ended"))
            }
        }
    }

    @Test("an exchange that becomes a tunnel still counts")
    func counts() throws {
        try onLoop { loop in
            let request = "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
            try forwarding(request, on: loop) { caller, service in
                #expect(caller.events.prefix(2) == ["accept", "last"])
                service.becomeTunnel()
                #expect(service.exchange == nil)
                #expect(caller.worker.counts.exchanges.count == 1)
            }
        }
    }

    @Test("a request that is not admitted gets a reply, and a caller that is not admitted loses the connection")
    func refuses() throws {
        try onLoop { loop in
            try forwarding("GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", on: loop) { caller, _ in
                #expect(caller.events == ["421 host-not-allowed"])
            }
            try forwarding("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop, users: [getuid() &+ 1]) {
                caller, _ in
                #expect(caller.events == ["last", "403 caller-not-allowed"])
            }
            try forwarding("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop, upstream: nil) { caller, _ in
                #expect(caller.events == ["404 no-route"])
            }
            try forwarding("TRACE /a HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop) { caller, _ in
                #expect(caller.events == ["405 method-not-allowed"])
            }
            let full = WorkerLimits(exchanges: 0)
            try forwarding("GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop, limits: full) { caller, _ in
                #expect(caller.events == ["503 overloaded"])
            }
        }
    }

    // MARK: Auth requests

    private func authRequests(_ request: String, on loop: EventLoop) throws -> FakeConnection {
        let caller = try FakeConnection(
            .authRequests, request, on: loop, upstream: .bank(port: 1), hosts: HostPolicy(names: ["bank.example"]),
            isUnixSocket: true)
        let service = AuthRequests(caller, worker: caller.worker)
        service.begin()
        #expect(caller.worker.counts.exchanges.count == (caller.events.contains("accept") ? 1 : 0))
        service.requestEnded()
        #expect(caller.worker.counts.exchanges.count == 0)
        service.close()
        return caller
    }

    @Test("an auth request that needs no login is answered at once, and nothing goes upstream")
    func authorizes() throws {
        try onLoop { loop in
            let caller = try authRequests(authRequest("GET", "/a"), on: loop)
            #expect(caller.events == ["accept", "whole", "ended"])
            #expect(caller.text.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(caller.text.contains("\r\nCountersign-Keep: Authorization, Cookie\r\n"))
            #expect(caller.text.hasSuffix("\r\nContent-Length: 0\r\n\r\n"))
        }
    }

    @Test("a denial of an auth request is a 403 with its reason in a field, whatever the reply would be")
    func denies() throws {
        try onLoop { loop in
            let elsewhere = try authRequests("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", on: loop)
            #expect(elsewhere.events == ["403 bad-request"])
            #expect(elsewhere.delivered?.fields.contains { $0 == ("Countersign-Code", "bad-request") } == true)
            let repeated = try authRequests(authRequest("GET", "/a", "X-Forwarded-Uri: /b\r\n"), on: loop)
            #expect(repeated.events == ["403 bad-request"])
        }
    }
}

/// Connection with one request, on a worker whose loop does not run.
private final class FakeConnection: ServedConnection {
    let caller: AcceptedCaller
    let worker: Worker
    private(set) var events: [String] = []
    private(set) var delivered: LocalAnswer?
    let accessBuilder: AccessRecordBuilder? = nil
    private let loop: EventLoop
    private let ends: [Int32]
    private let services: ClientServices
    private var parser = RequestHeadParser()
    private var head = ByteQueue()
    private var output = ByteQueue()

    init(
        _ service: ListenerPlan.Service, _ request: String, on loop: EventLoop, upstream: UpstreamPlan? = nil,
        limits: WorkerLimits = WorkerLimits(), hosts: HostPolicy = HostPolicy(), users: Set<UInt32>? = nil,
        isUnixSocket: Bool = false
    ) throws {
        self.loop = loop
        services = ClientServices(
            gate: SharedAttemptGate(
                limits: SessionLimits(), store: UnkeptAttempts(), chance: { 0 }, now: { 0 }),
            state: MemoryState(), wallClock: { 0 }, observer: LoginLog())
        let places = ConnectionQuotas(limit: nil)
        worker = try Worker(
            loop: loop, number: 0, services: services, limits: limits,
            counts: SharedCounts(callers: places, exchanges: SharedCount(limit: limits.exchanges)),
            upstreamConnections: 4, figures: ProxyFigures(),
            log: ExchangeLog(logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })) { 0 },
            peers: WorkerPeers())
        worker.apply(ProxyPlan(listeners: [], upstreams: upstream.map { [$0] } ?? []), sockets: [])
        let plan = ListenerPlan(
            name: "test", service: service, router: Router(fallback: "bank"), hosts: hosts, users: users)
        let listening = Glibc.socket(isUnixSocket ? AF_UNIX : AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let callers = try Self.pair()
        ends = [listening] + callers
        let socket = ListenSocket(
            point: .inherited(descriptor: listening, name: "test"), descriptor: listening, file: nil,
            callers: places)
        caller = AcceptedCaller(
            callers[0], Acceptor(socket: socket, plan: plan, worker: worker),
            ConnectionPermit(.unasked, at: plan, of: places, and: places), user: nil)
        for byte in request.utf8 { head.append(byte) }
        let outcome = head.withSpan { parser.parse($0) }
        try #require(outcome == .complete(length: request.utf8.count))
    }

    deinit {
        for end in ends { close(end) }
        // The worker and its shared services retain each other.
        services.roster.dismiss(worker: 0)
    }

    private static func pair() throws -> [Int32] {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        return ends
    }

    /// Text written so far.
    var text: String { output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) } }

    func withRequest<Result, Failure: Error>(
        _ body: (_ request: RequestHead, _ bytes: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try head.withSpan { (bytes) throws(Failure) in try body(parser.head, bytes) }
    }

    func recordAccess(_ reply: LocalReply, id: ExchangeID, upstream: String?) {}

    func deliver(_ answer: LocalAnswer) {
        delivered = answer
        let code = LocalReply.Code.allCases.first { code in
            answer.fields.contains { $0.name == "Proxy-Status" && $0.value.contains("details=\"\(code.rawValue)\"") }
        }
        events.append("\(answer.status) \(code?.rawValue ?? String(decoding: answer.body, as: UTF8.self))")
    }

    func deliver(_ answer: LaterAnswer) { events.append("later \(answer.answer().status)") }
    func accept() { events.append("accept") }
    func endAfterRequest() { events.append("last") }
    func keepsAlive(after status: Int) -> Bool { true }
    func writesWholeResponse() -> Bool { true }
    func responseBegan(keepsAlive: Bool, endsWithConnection: Bool) { events.append("begun") }
    func responseIsWhole() { events.append("whole") }
    func write(_ body: (inout ByteQueue) -> Void) { body(&output) }
    func bodyIsWanted() { events.append("body wanted") }
    func continueIsPassedOn() {}
    func requestEnded(isBroken: Bool) { events.append(isBroken ? "broken" : "ended") }
    func reset() { events.append("reset") }
    func switchProtocol(to upstream: UpstreamConnection) { events.append("switched") }
}
