// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import TestSupport
import Testing

@Suite("The end of a drain")
struct DrainTests {
    /// Drains and does not wait, as if the time for it were over at once. What it returns is set when all are gone.
    private func endDrain(_ proxy: TestProxy) -> Signal {
        let isDone = Signal()
        proxy.server.drain { isDone.set() }
        proxy.server.turnAway()
        return isDone
    }

    private func expectDraining(_ caller: Peer) throws {
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 503 "))
        #expect(head.contains("Connection: close\r\n"))
        #expect(head.contains("Retry-After: 1\r\n"))
        #expect(body.contains("\"code\":\"draining\""))
        try caller.expectEnd()
    }

    @Test("at the end of a drain an exchange without a response gets `draining`, and its transfer is cancelled")
    func unanswered() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get())
        let server = try upstream.accept()
        _ = try server.head()
        let isDone = endDrain(proxy)
        try expectDraining(caller)
        try server.expectEnd()
        proxy.wait("the end") { isDone.isSet }
        #expect(proxy.server.figures.openConnections == 0)
    }

    @Test("at the end of a drain a request that is still arriving gets `draining`")
    func uploading() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
        let server = try upstream.accept()
        _ = try server.read(until: "12345")
        let isDone = endDrain(proxy)
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 503 ") && body.contains("\"code\":\"draining\""))
        caller.close()
        proxy.wait("the end") { isDone.isSet }
    }

    @Test("at the end of a drain every waiter of a login gets `draining`")
    func waiters() throws {
        let upstream = try AnsweringUpstream { _, _ in challenge }
        let gate = Gate()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in
            await gate.pass()
            return .bearer("late")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]), workers: 2)
        let callers = try (0..<10).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get()) }
        proxy.wait("every challenge") { proxy.waiters == 10 }
        let isDone = endDrain(proxy)
        for caller in callers { try expectDraining(caller) }
        proxy.wait("the end") { isDone.isSet }
        gate.open()
    }

    @Test(
        "at the end of a drain a begun response is cut off so that it does not look complete",
        arguments: ["1.0", "1.1"])
    func begun(version: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send("GET / HTTP/\(version)\r\nHost: localhost\r\n\r\n")
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n")
        _ = try caller.read(until: "part")
        let isDone = endDrain(proxy)
        let rest = try caller.readAll()
        // By chunks the missing last one tells, without them only a reset.
        if version == "1.0" { #expect(rest == nil) } else { #expect(rest?.contains("0\r\n") != true) }
        proxy.wait("the end") { isDone.isSet }
    }
}
