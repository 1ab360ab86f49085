// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import Synchronization
import Testing

@Suite("A disk tier that does not work")
struct DiskFaultTests {
    private let directory = SpoolDirectory()
    private let tiers = ReplayTiers(memory: 64 * 1024, disk: 32 << 20)

    /// Returns an upstream that challenges every request without a session.
    private func bank() throws -> UploadUpstream {
        try UploadUpstream { $0.has("Authorization: Bearer one") ? answer("200 OK", "well") : challenge }
    }

    private func proxy(_ upstream: UploadUpstream, _ spool: ReplaySpool) throws -> TestProxy {
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        return try TestProxy(.bank(port: upstream.port, replay: tiers, logins: [login]), spool: spool)
    }

    /// Expects a body of unknown length that cannot be kept to be refused with a reason, and to pass the second time.
    private func expectUnreplayable(_ upstream: UploadUpstream, _ proxy: TestProxy) throws {
        let body = LongBody(count: 2_000_000)
        let caller = try proxy.connect()
        startThread(sending: post(body, inChunksOf: 10_000), to: caller)
        let (head, text) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 413 "))
        #expect(text.contains("\"code\":\"body-not-replayable\""))
        #expect(text.contains("Send the request again"))
        proxy.wait("the login that began meanwhile") { proxy.log.finished == 1 }
        proxy.settle()
        #expect(proxy.waiters == 0)
        let again = try proxy.connect()
        startThread(sending: post(body, inChunksOf: 10_000), to: again)
        #expect(try again.message().body == "well")
        #expect(upstream.uploads.last?.body == body)
        #expect(proxy.log.count == 1)
    }

    @Test("a missing directory prevents the replay of a long body, but not of a short one")
    func missing() throws {
        let upstream = try bank()
        let told = Mutex<[ReplayTrouble?]>([])
        let spool = ReplaySpool(
            directory: directory.path + "/not/there", limit: 1 << 30, now: { 1_000_000 },
            onChange: { trouble in told.withLock { $0.append(trouble) } })
        let proxy = try proxy(upstream, spool)
        try expectUnreplayable(upstream, proxy)
        #expect(told.withLock { $0 } == [.opening(ENOENT)])
        _ = proxy.services.gate.change { $0.sessions.drop { _ in true } }
        let caller = try proxy.connect()
        startThread(sending: post(LongBody(count: 60_000), inChunksOf: 10_000), to: caller)
        #expect(try caller.message().body == "well")
    }

    @Test(
        "a full file system prevents the replay of a long body, but not of a short one",
        .enabled(if: geteuid() == 0))
    func full() throws {
        // In some containers not even root may mount; then the test has nothing to do.
        guard unsafe mount("none", directory.path, "tmpfs", 0, "size=1m") == 0 else { return }
        defer { unsafe umount2(directory.path, Int32(MNT_DETACH)) }
        let upstream = try bank()
        let spool = directory.spool()
        try expectUnreplayable(upstream, try proxy(upstream, spool))
        #expect(spool.figures.unreplayableExchanges == 1)
        #expect(spool.figures.bytesInUse == 0)
        #expect(descriptors(within: directory.path) == [])
    }

    @Test("a body of known length that does not fit on disk is sent after the login")
    func known() throws {
        let upstream = try bank()
        let spool = directory.spool(limit: 1_000_000)
        let proxy = try proxy(upstream, spool)
        let caller = try proxy.connect()
        startThread(sending: post(LongBody(count: 2_000_000)), to: caller)
        #expect(try caller.message().body == "well")
        #expect(upstream.uploads.count == 1)
        #expect(upstream.heads.first?.contains("\r\nExpect: 100-continue\r\n") == true)
        #expect(spool.figures.bytesFromDisk == 0)
    }

    @Test("exchanges share the disk budget: one without a share is streamed, the other is replayed")
    func shared() throws {
        let upstream = try ScriptedUpstream()
        let login = Authenticator.scripted(port: upstream.port) { _, _, _ in .bearer("one") }
        let spool = directory.spool(limit: 1_000_000)
        let proxy = try TestProxy(.bank(port: upstream.port, replay: tiers, logins: [login]), workers: 2, spool: spool)
        let body = LongBody(count: 900_000)
        var pairs: [(caller: Peer, server: Peer)] = []
        for _ in 0..<2 {
            let caller = try proxy.connect()
            startThread(sending: post(body, inChunksOf: 5_000), to: caller)
            let server = try upstream.accept()
            #expect(try server.body(of: try server.head()) == body)
            pairs.append((caller, server))
        }
        #expect(spool.figures.bytesInUse <= 1_000_000)
        try pairs[1].server.send(challenge)
        #expect(try pairs[1].caller.message().head.hasPrefix("HTTP/1.1 413 "))
        try pairs[0].server.send(challenge)
        let head = try pairs[0].server.head()
        #expect(head.contains("Authorization: Bearer one\r\n"))
        #expect(try pairs[0].server.body(of: head) == body)
        try pairs[0].server.send(answer("200 OK", "well"))
        #expect(try pairs[0].caller.message().body == "well")
        #expect(spool.figures.bytesInUse == 0)
    }

    @Test("a spool file that cannot be read back fails the exchange with a reason, and does not truncate the body")
    func unreadable() throws {
        let upstream = try bank()
        let spool = ReplaySpool(limit: 1 << 30, now: { 0 }, opening: { () throws(ReplayFileError) in Unreadable() })
        let proxy = try proxy(upstream, spool)
        let caller = try proxy.connect()
        startThread(sending: post(LongBody(count: 2_000_000)), to: caller)
        let (head, text) = try caller.message()
        #expect(head.hasPrefix("HTTP/1.1 413 "))
        #expect(text.contains("could not be read back"))
        #expect(upstream.uploads.count == 1)
    }

    private final class Unreadable: ReplayFile {
        func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ReplayFileError) {}
        func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ReplayFileError) {
            throw ReplayFileError(EIO)
        }
    }
}
