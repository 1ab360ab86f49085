// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Challenges to requests for another protocol")
struct ChallengedUpgradeTests {
    let server: ScriptedUpstream

    init() throws { server = try ScriptedUpstream() }

    @Test("a challenge to a handshake is answered, and the handshake is sent again with the session")
    func challenged() throws {
        let login = Authenticator.scripted(port: server.port) { _, _, _ in .bearer("won") }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade("/feed", to: "echo", "Authorization: Bearer mine\r\n") + "early")
        let first = try server.accept()
        #expect(try first.head().contains("\r\nUpgrade: echo\r\n"))
        try first.send(challenge)
        let second = try server.accept()
        let head = try second.head()
        #expect(head.hasPrefix("GET /feed "))
        #expect(head.contains("\r\nAuthorization: Bearer won\r\n"))
        #expect(!head.contains("mine"))
        #expect(head.contains("\r\nUpgrade: echo\r\n"))
        try first.expectEnd()
        proxy.settle()
        #expect(!second.hasNews, "nothing is sent before the upstream has switched")
        try second.send(switching(to: "echo", "Authentication-Info: of=won\r\n") + "welcome")
        let answer = try caller.head()
        #expect(answer.hasPrefix("HTTP/1.1 101 "))
        #expect(!answer.contains("Authentication-Info"))
        try caller.expect("welcome")
        try second.expect("early")
        #expect(proxy.log.count == 1)
    }

    @Test("a handshake whose login fails gets a local reply, and nothing is switched")
    func failed() throws {
        let login = Authenticator.scripted(port: server.port) { (_, _, _) throws(LoginFailure) in throw .rejected }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(challenge)
        let reply = try caller.message()
        #expect(reply.head.hasPrefix("HTTP/1.1 502 "))
        #expect(reply.body.contains("login-rejected"))
    }

    @Test("a session from a login before the request is in the first handshake")
    func ahead() throws {
        let login = Authenticator.scripted(port: server.port, isAhead: true) { _, _, _ in .bearer("won") }
        let proxy = try TestProxy(.bank(port: server.port, logins: [login]))
        let caller = try proxy.connect()
        try caller.send(upgrade())
        let upstream = try server.accept()
        #expect(try upstream.head().contains("\r\nAuthorization: Bearer won\r\n"))
        try upstream.send(switching())
        #expect(try caller.head().hasPrefix("HTTP/1.1 101 "))
    }
}
