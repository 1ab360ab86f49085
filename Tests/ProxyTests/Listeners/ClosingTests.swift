// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import EventLoop
import Glibc
import HTTPWire
import Synchronization
import TestSupport
import Testing

@testable import Proxy

@Suite("Listeners that close or change")
struct ClosingTests {
    /// Service that blocks its worker until released.
    private final class Block: LocalService {
        let isHolding = Signal()
        let isReleased = Signal()

        func answer(_ request: LocalRequest) -> LocalAnswer {
            isHolding.set()
            isReleased.wait()
            return LocalAnswer(status: 200, contentType: "text/plain", body: [])
        }
    }

    private static let path = "/tmp/countersign-closing-\(getpid())"
    private static let any = ListenPoint.tcp(host: "127.0.0.1", port: 0)

    /// Calls `body` on another thread when the blocked worker gets its next job, which is to close a listener.
    private func onceGivenWork(_ proxy: TestProxy, _ body: @escaping @Sendable () -> Void) {
        let (time, before) = (proxy.time, proxy.time.workCount)
        inBackground {
            // The count changes before a job is enqueued, and after.
            #expect(Bell.shared.wait { time.workCount > before + 1 })
            body()
        }
    }

    private func caller(of proxy: TestProxy, at point: ListenPoint) throws -> Peer {
        if case .unix(let path, _) = point { try Peer(path: path) } else { try proxy.connect() }
    }

    @Test(
        "callers who are not accepted yet when a listener closes are served",
        arguments: [true, false], [any, .unix(path: path + "-queue", mode: 0o600)])
    func queue(isDrain: Bool, point: ListenPoint) throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let block = Block()
        let admin = (
            point: ListenPoint.tcp(host: "::1", port: 0),
            plan: ListenerPlan(
                name: "admin", service: .local(block), router: Router(fallback: nil), hosts: HostPolicy())
        )
        let proxy = try TestProxy(
            ProxyPlan(listeners: [(point: point, plan: .proxy()), admin], upstreams: [.bank(port: upstream.port)]))
        let holder = Peer(accepted: try connectedSocket(to: "::1", port: port(of: proxy.server.descriptors[1])))
        try holder.send(get())
        #expect(block.isHolding.wait())
        // All are connected, and the last has sent nothing yet.
        let callers = try (0..<20).map { _ in try caller(of: proxy, at: point) }
        for caller in callers.dropLast() { try caller.send(get()) }
        onceGivenWork(proxy) { block.isReleased.set() }
        let isDone = Signal()
        if isDrain {
            proxy.server.drain { isDone.set() }
        } else {
            try proxy.server.apply(ProxyPlan(listeners: [admin], upstreams: [.bank(port: upstream.port)]))
        }
        try callers.last?.send(get())
        for caller in callers {
            let (head, body) = try caller.message()
            #expect(body == "in")
            #expect(head.contains("Connection: close\r\n"))
            try caller.expectEnd()
        }
        if isDrain { proxy.wait("the end") { isDone.isSet } }
    }

    @Test("a socket that the next daemon has opened at its path stays when the one before ends")
    func nextDaemon() throws {
        let path = Self.path + "-next"
        let point = ListenPoint.unix(path: path, mode: 0o600)
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let block = Block()
        let admin = (
            point: ListenPoint.tcp(host: "::1", port: 0),
            plan: ListenerPlan(
                name: "admin", service: .local(block), router: Router(fallback: nil), hosts: HostPolicy())
        )
        func plan() -> ProxyPlan {
            ProxyPlan(listeners: [(point: point, plan: .proxy()), admin], upstreams: [.bank(port: upstream.port)])
        }
        let old = try TestProxy(plan())
        let holder = Peer(accepted: try connectedSocket(to: "::1", port: port(of: old.server.descriptors[1])))
        try holder.send(get())
        #expect(block.isHolding.wait())
        // Its worker is blocked while it drains, so the next listener opens before the drain ends.
        let opened = Mutex<Int32>(-1)
        onceGivenWork(old) {
            if let descriptor = try? point.open() { opened.withLock { $0 = descriptor } }
            block.isReleased.set()
        }
        let isDone = Signal()
        old.server.drain { isDone.set() }
        old.wait("the end") { isDone.isSet }
        old.server.stop()
        #expect(opened.withLock { $0 } >= 0)
        _ = try Peer(path: path)
        close(opened.withLock { $0 })
        unsafe unlink(path)
    }

    @Test("the name of a Unix socket that now belongs to another file stays")
    func otherFile() throws {
        let path = Self.path + "-other"
        let point = ListenPoint.unix(path: path, mode: 0o600)
        let old = try point.open()
        let file = point.file
        #expect(unsafe rename(path, path + ".moved") == 0)
        let new = try point.open()
        point.close(old, file)
        _ = try Peer(path: path)
        point.close(new, point.file)
        #expect(unsafe access(path, F_OK) != 0)
        unsafe unlink(path + ".moved")
    }

    @Test("a reload gives a Unix socket other permissions, and its callers stay")
    func permissions() throws {
        let path = Self.path + "-mode"
        func mode() -> mode_t {
            var status = stat()
            #expect(unsafe stat(path, &status) == 0)
            return status.st_mode & 0o777
        }
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        func plan(_ points: ListenPoint...) -> ProxyPlan {
            ProxyPlan(
                listeners: points.map { (point: $0, plan: .proxy()) }, upstreams: [.bank(port: upstream.port)])
        }
        let proxy = try TestProxy(plan(.unix(path: path, mode: 0o600)))
        let caller = try Peer(path: path)
        try caller.send(get())
        #expect(try caller.message().body == "in")
        try proxy.server.apply(plan(.unix(path: path, mode: 0o660)))
        #expect(mode() == 0o660)
        try caller.send(get())
        #expect(try caller.message().body == "in")
        // A reload that fails at another listener changes nothing.
        #expect(throws: ListenError.self) {
            try proxy.server.apply(
                plan(.unix(path: path, mode: 0o666), .tcp(host: "127.0.0.1", port: upstream.port)))
        }
        #expect(mode() == 0o660)
        // A reload that fails at another socket's permissions restores those that it had changed.
        let gone = Self.path + "-gone"
        try proxy.server.apply(plan(.unix(path: path, mode: 0o660), .unix(path: gone, mode: 0o600)))
        #expect(unsafe unlink(gone) == 0)
        #expect(throws: ListenError.self) {
            try proxy.server.apply(plan(.unix(path: path, mode: 0o600), .unix(path: gone, mode: 0o660)))
        }
        #expect(mode() == 0o660)
        let second = try Peer(path: path)
        try second.send(get())
        #expect(try second.message().body == "in")
    }
}
