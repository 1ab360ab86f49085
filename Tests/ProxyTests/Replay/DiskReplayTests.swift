// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Bodies that are sent again from disk")
struct DiskReplayTests {
    private let directory = SpoolDirectory()
    private let tiers = ReplayTiers(memory: 64 * 1024, disk: 32 << 20)

    /// Returns an upstream that challenges every request without `token`.
    private func bank(token: String = "one") throws -> UploadUpstream {
        try UploadUpstream { upload in
            upload.has("Authorization: Bearer \(token)") ? answer("200 OK", "\(upload.body.count)") : challenge
        }
    }

    private func login(port: UInt16) -> Authenticator {
        .scripted(port: port) { number, _, _ in .bearer(number == 1 ? "one" : "two") }
    }

    @Test(
        "a body of up to both tiers arrives whole after a login in between",
        arguments: [(1 << 20, nil), (1 << 20, 1000), (20 << 20, nil), (3 << 20, 65_536)])
    func login(count: Int, chunk: Int?) throws {
        let upstream = try bank()
        let spool = directory.spool()
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: tiers, logins: [login(port: upstream.port)]), spool: spool)
        let caller = try proxy.connect()
        let body = LongBody(count: count)
        startThread(sending: post(body, inChunksOf: chunk), to: caller)
        #expect(try caller.message().body == "\(count)")
        #expect(upstream.uploads.count == 2)
        #expect(upstream.uploads.allSatisfy { $0.body == body })
        #expect(!upstream.heads.contains { $0.contains("Expect") })
        #expect(spool.figures.bytesFromMemory + spool.figures.bytesFromDisk == count)
        #expect(spool.figures.bytesFromDisk > count / 2)
        // The connection stays open, and nothing is kept for it.
        #expect(descriptors(within: directory.path) == [])
        #expect(spool.figures.bytesInUse == 0)
        startThread(sending: post(body, inChunksOf: chunk), to: caller)
        #expect(try caller.message().body == "\(count)")
        #expect(upstream.uploads.count == 3)
        #expect(upstream.uploads.last?.body == body)
        #expect(spool.figures.bytesInUse == 0)
    }

    @Test("a body is sent three times for two rounds of a challenge")
    func twoRounds() throws {
        let upstream = try UploadUpstream { upload in
            if upload.has("Authorization: Bearer b") { return answer("200 OK", "well") }
            if upload.has("Authorization: Bearer a") {
                return answer(
                    "403 Forbidden", "more", "WWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"x\"\r\n")
            }
            return challenge
        }
        let login = Authenticator.scripted(port: upstream.port) { _, scope, _ in
            .bearer(scope.description.isEmpty ? "a" : "b")
        }
        let spool = directory.spool()
        let proxy = try TestProxy(.bank(port: upstream.port, replay: tiers, logins: [login]), spool: spool)
        let caller = try proxy.connect()
        let body = LongBody(count: 3_000_000)
        startThread(sending: post(body), to: caller)
        #expect(try caller.message().body == "well")
        #expect(upstream.uploads.count == 3)
        #expect(upstream.uploads.allSatisfy { $0.body == body })
        #expect(spool.figures.bytesFromMemory + spool.figures.bytesFromDisk == 6_000_000)
        #expect(descriptors(within: directory.path) == [])
    }

    @Test("a challenge in the middle of a body is answered, and the rest follows the kept part")
    func middle() throws {
        let upstream = try ScriptedUpstream()
        let login = login(port: upstream.port)
        let spool = directory.spool()
        let proxy = try TestProxy(.bank(port: upstream.port, replay: tiers, logins: [login]), spool: spool)
        let caller = try proxy.connect()
        let body = LongBody(count: 2_000_000)
        let request = post(body)
        startThread(sending: Array(request[..<1_000_000]), to: caller)
        let server = try upstream.accept()
        _ = try server.head()
        _ = try server.read(count: 900_000)
        try server.send(challenge)
        let second = try upstream.accept()
        let head = try second.head()
        #expect(head.contains("Authorization: Bearer one\r\n"))
        startThread(sending: Array(request[1_000_000...]), to: caller)
        #expect(try second.body(of: head) == body)
        try second.send(answer("200 OK", "done"))
        #expect(try caller.message().body == "done")
        #expect(spool.figures.bytesInUse == 0)
    }

    @Test("the spool file is removed once the answer has begun, however long it lasts")
    func freedEarly() throws {
        let upstream = try ScriptedUpstream()
        let spool = directory.spool()
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: tiers, logins: [login(port: upstream.port)]), spool: spool)
        let caller = try proxy.connect()
        startThread(sending: post(LongBody(count: 1_000_000)), to: caller)
        let server = try upstream.accept()
        _ = try server.body(of: try server.head())
        #expect(spool.figures.bytesInUse > 600_000)
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe")
        _ = try caller.read(until: "we")
        #expect(spool.figures.bytesInUse == 0)
        #expect(descriptors(within: directory.path) == [])
        try server.send("ll")
        try caller.expect("ll")
    }

    @Test("callers that are killed during an upload leak no file and no part of the budget")
    func killed() throws {
        let upstream = try ScriptedUpstream()
        let spool = directory.spool()
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: tiers, logins: [login(port: upstream.port)]), workers: 2, spool: spool)
        let body = post(LongBody(count: 1_000_000))
        var callers: [(Peer, Peer)] = []
        for _ in 0..<10 {
            let caller = try proxy.connect()
            startThread(sending: Array(body[..<700_000]), to: caller)
            let server = try upstream.accept()
            _ = try server.head()
            _ = try server.read(count: 600_000)
            callers.append((caller, server))
        }
        #expect(descriptors(within: directory.path).count == 10)
        #expect(spool.figures.bytesInUse > 10 * 400_000)
        for (index, (caller, server)) in callers.enumerated() {
            if index % 2 == 0 { caller.reset() } else { caller.close() }
            try server.expectEnd()
        }
        proxy.expectNoConnections()
        #expect(descriptors(within: directory.path) == [])
        #expect(spool.figures.bytesInUse == 0)
    }

    @Test("no body is kept if no challenge can come", arguments: [false, true])
    func nothingStands(isInjected: Bool) throws {
        let upstream = try ScriptedUpstream()
        let inject = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            .bearer("key")
        }
        let spool = directory.spool()
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: tiers, logins: isInjected ? [inject] : []), spool: spool)
        let caller = try proxy.connect()
        let body = LongBody(count: 8 << 20)
        startThread(sending: post(body), to: caller)
        let server = try upstream.accept()
        let head = try server.head()
        #expect(head.contains("Bearer key") == isInjected)
        #expect(!head.contains("Expect"))
        let first = try server.read(count: 4 << 20)
        #expect(descriptors(within: directory.path) == [])
        #expect(try LongBody(first + server.read(count: 4 << 20)) == body)
        try server.send(challenge)
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 401 "))
    }

    @Test("a POST is not sent again by itself, whether its connection was new or kept", arguments: [false, true])
    func notDoubled(isKept: Bool) throws {
        let upstream = try UploadUpstream(
            react: { $0.hasPrefix("POST ") ? .hangUp(after: 500_000) : .read },
            answer: { _ in answer("200 OK", "well") }
        )
        let spool = directory.spool()
        let proxy = try TestProxy(
            .bank(port: upstream.port, replay: tiers, logins: [login(port: upstream.port)]), spool: spool)
        let caller = try proxy.connect()
        if isKept {
            try caller.send(get())
            #expect(try caller.message().body == "well")
        }
        startThread(sending: post(LongBody(count: 1_000_000)), to: caller)
        let (head, body) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 502 "))
        #expect(body.contains("\"code\":\"upstream-unreachable\""))
        #expect(upstream.heads.count { $0.hasPrefix("POST ") } == 1)
        proxy.wait("the file to go") { spool.figures.bytesInUse == 0 }
    }
}
