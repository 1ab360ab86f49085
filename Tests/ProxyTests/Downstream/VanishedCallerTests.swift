// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import Testing

/// A caller that closes its connection sends the same FIN as one that only half-closes it and waits for its response.
@Suite("Callers that vanish")
struct VanishedCallerTests {
    @Test("a caller that closes while its response is awaited cancels the transfer", arguments: [false, true])
    func awaiting(hasBody: Bool) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(hasBody ? "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nok" : get())
        let server = try upstream.accept()
        _ = try server.message()
        caller.close()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a caller that closes during a resting stream cancels the transfer")
    func streaming() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n")
        _ = try caller.head()
        try caller.expect("8\r\ndata: 1\n\r\n")
        caller.close()
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a caller that closes while a login runs is no longer a waiter")
    func duringLogin() throws {
        let upstream = try ScriptedUpstream()
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port, isAhead: true) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(get())
        proxy.wait("a waiter") { proxy.waiters == 1 }
        caller.close()
        proxy.wait("no waiter") { proxy.waiters == 0 }
        proxy.expectNoConnections()
        gate.open()
    }

    @Test("a caller that ends its side after a whole body gets its response after the login")
    func behindHeldBody() throws {
        let upstream = try ScriptedUpstream()
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port, isAhead: true) { _, _, _ in
            await gate.pass()
            return .bearer("one")
        }
        // The body is not read before it can be sent.
        let proxy = try TestProxy(.bank(port: upstream.port, replay: ReplayTiers(memory: 0), logins: [login]))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n")
        try caller.send([UInt8](repeating: UInt8(ascii: "x"), count: 5000))
        caller.finish()
        proxy.wait("a waiter") { proxy.waiters == 1 }
        proxy.settle()
        gate.open()
        let server = try upstream.accept()
        #expect(try server.message().body.utf8.count == 5000)
        try server.send(answer("200 OK", "ok"))
        #expect(try caller.message().body == "ok")
    }

    @Test("a caller that has only ended its side gets its response, however late")
    func halfClosed() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        caller.finish()
        let server = try upstream.accept()
        _ = try server.head()
        // Longer than the interval between two checks.
        proxy.pass(.seconds(5))
        #expect(!server.hasNews)
        try server.send(answer("200 OK", "late"))
        #expect(try caller.message().body == "late")
        proxy.expectNoConnections()
    }

    @Test("a caller that ends its side and closes later is detected")
    func closedLater() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        caller.finish()
        let server = try upstream.accept()
        _ = try server.head()
        proxy.settle()
        #expect(!server.hasNews)
        caller.close()
        proxy.pass(.seconds(1))
        try server.expectEnd()
        proxy.expectNoConnections()
    }

    @Test("a caller over a Unix socket that closes is detected by its hang-up")
    func unixSocket() throws {
        let path = "/tmp/cs-vanish-\(getpid())-\(UInt32.random(in: 0 ... .max)).sock"
        defer { unsafe unlink(path) }
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .unix(path: path, mode: 0o600), plan: .proxy())],
                upstreams: [.bank(port: upstream.port)]))
        let caller = try Peer(path: path)
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        caller.close()
        try server.expectEnd()
        proxy.expectNoConnections()
    }
}
