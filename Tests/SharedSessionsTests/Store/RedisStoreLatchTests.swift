// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Redis
import Testing

@testable import SharedSessions

@Suite("Shared latches and used one-time codes", .timeLimit(.minutes(10)))
struct RedisStoreLatchTests {
    @Test("a shared latch is read as it was closed, until its challenge is opened")
    func roundTrip() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let none = try #require(await rig.latches())
        #expect(none.count == 0 && none.latches.isEmpty)
        let now = wallClock()
        let latches = [
            SharedLatch(
                digest: "aa", challenge: "bank ä -",
                latch: Latch(reason: .locked, closedAt: now - 60_000, opensAt: now + 600_000)),
            SharedLatch(digest: "bb", challenge: "bank ä -", latch: Latch(reason: .rejected, closedAt: now)),
            SharedLatch(digest: "cc", challenge: "other", latch: Latch(reason: .rejected, closedAt: now)),
        ]
        #expect(await rig.close(latches))
        let found = try #require(await rig.latches())
        #expect(found.latches.map(\.digest).sorted() == ["aa", "bb", "cc"])
        for latch in latches {
            let other = try #require(found.latches.first { $0.digest == latch.digest })
            #expect(other.challenge == latch.challenge && other.latch.reason == latch.latch.reason)
            #expect(abs(other.latch.closedAt - latch.latch.closedAt) < 5_000)
            #expect((other.latch.opensAt == nil) == (latch.latch.opensAt == nil))
            #expect(abs((other.latch.opensAt ?? 0) - (latch.latch.opensAt ?? 0)) < 5_000)
        }
        #expect(await rig.open("bank ä -") == 2)
        #expect(await rig.open("bank ä -") == 0)
        let rest = try #require(await rig.latches())
        #expect(rest.latches.map(\.digest) == ["cc"])
        #expect(found.count > UInt64(now) - 5_000 && rest.count == found.count + 1)
        guard
            case .granted(_, rest.count)? = await rig.ask(
                .acquire(after: 0, token: LeaseToken("t"), lifetime: .seconds(1)))
        else {
            Issue.record("the count is not told with a lease")
            return
        }
    }

    @Test("a shared latch is not closed after its time")
    func expired() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let now = wallClock()
        #expect(
            await rig.close([
                SharedLatch(digest: "a", challenge: "c", latch: Latch(reason: .locked, closedAt: now, opensAt: now - 1))
            ]))
        #expect(await rig.latches()?.count == 0)
        let short = SharedLatch(
            digest: "b", challenge: "c", latch: Latch(reason: .locked, closedAt: now, opensAt: wallClock() + 300))
        #expect(await rig.close([short, SharedLatch(digest: "c", challenge: "c", latch: .closed)]))
        while await rig.latches()?.latches.count != 1 {}
        #expect(await rig.open("c") == 1)
        #expect(await rig.close([SharedLatch(digest: "d", challenge: "d", latch: .closed)]))
        #expect(try await server.command("HKEYS", "{countersign}:latches").split(separator: "\n") == ["d"])
    }

    @Test("shared latches are bounded, and the earliest are removed")
    func bounded() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let now = wallClock()
        let latches = (0..<1_030).map { number in
            SharedLatch(
                digest: "digest\(number)", challenge: "c",
                latch: Latch(reason: .rejected, closedAt: now - Int64(number) * 1_000))
        }
        #expect(await rig.close(latches))
        let found = try #require(await rig.latches())
        #expect(Set(found.latches.map(\.digest)) == Set(latches.prefix(1_024).map(\.digest)))
        #expect(await rig.open("c") == 1_024)
    }

    @Test("used one-time codes keep the exact end of their last step and are not latches")
    func usedCodes() async throws {
        let server = try await RedisServer()
        let (rig, other) = (try await RedisStoreRig(server), try await RedisStoreRig(server))
        let end = (wallClock() / 30_000 + 1) * 30_000
        #expect(await rig.markUsed(["ann": end, "bob": end + 60_000]))
        let count = try #require(await other.latches()?.count)
        #expect(count > 0)
        #expect(await rig.markUsed(["ann": end + 30_000, "bob": end]))
        let found = try #require(await other.latches())
        #expect(found.usedCodes.ends == ["ann": end + 30_000, "bob": end + 60_000])
        #expect(found.latches.isEmpty && found.count == count + 1)
        #expect(await rig.open("") == 0)
        guard
            case .granted(_, found.count)? = await rig.ask(
                .acquire(after: 0, token: LeaseToken("t"), lifetime: .seconds(1)))
        else {
            Issue.record("the count is not told with a lease")
            return
        }
    }

    @Test("used one-time codes are bounded and forgotten after two hours")
    func codesAreBounded() async throws {
        let server = try await RedisServer()
        let rig = try await RedisStoreRig(server)
        let now = wallClock()
        let codes = Dictionary(uniqueKeysWithValues: (0..<1_030).map { ("seed\($0)", now + Int64($0)) })
        #expect(await rig.markUsed(codes))
        #expect(await rig.latches()?.usedCodes.ends == codes.filter { $0.value >= now + 6 })
        #expect(await rig.markUsed(["old": now - 7_300_000, "new": now + 9_000]))
        let found = try #require(await rig.latches()?.usedCodes.ends)
        #expect(found["old"] == nil && found["new"] == now + 9_000 && found.count == 1_024)
        let lifetime = Int(try await server.command("PTTL", "{countersign}:used-codes").filter(\.isNumber)) ?? 0
        #expect(lifetime > 7_000_000 && lifetime <= 7_200_000)
    }
}

@Suite("The replies of a session store as values")
struct RedisAnswerTests {
    private static let now: Int64 = 1_700_000_000_000
    private static let tenYears: Int64 = 10 * 366 * 86_400_000

    private func text(_ text: String) -> Reply { .string(Array(text.utf8)) }

    private func closed(age: Reply, left: Reply) -> Latch? {
        RedisAnswer.attempts(
            .array([.integer(1), .array([text("d"), text("c"), text("rejected"), age, left]), .array([])]),
            now: Self.now)?
            .latches.first?.latch
    }

    @Test("ages and waits are cut at ten years, so that no sum with them ends the process or opens a latch")
    func spans() throws {
        for number in [Int64.max, .max - Self.now, Self.tenYears + 1] {
            let latch = try #require(closed(age: .integer(number), left: .integer(number)))
            #expect(latch.closedAt == Self.now - Self.tenYears)
            #expect(latch.opensAt == Self.now + Self.tenYears)
            #expect(
                RedisAnswer.reply(.array([text("wait"), .integer(number)])) == .wait(.milliseconds(Self.tenYears)))
            #expect(
                RedisAnswer.reply(.array([text("failed"), text("f"), .integer(number)]))
                    == .failed([0x66], for: .milliseconds(Self.tenYears)))
        }
        let latch = try #require(closed(age: .integer(1000), left: .integer(5000)))
        #expect(latch.closedAt == Self.now - 1000 && latch.opensAt == Self.now + 5000)
        for now in [Int64.min, .max] {
            let told = RedisAnswer.attempts(
                .array([
                    .integer(1), .array([text("d"), text("c"), text("locked"), .integer(.max), .integer(.max)]),
                    .array([]),
                ]), now: now)
            #expect(told?.latches.first?.latch.opensAt ?? .min >= now)
        }
    }

    @Test("a latch with an unreadable number makes all latches unknown, and opens none")
    func unreadable() {
        for strange: Reply in [.integer(-1), .integer(.min), .null, text("x"), text("5")] {
            #expect(closed(age: strange, left: .integer(1)) == nil)
            #expect(closed(age: .integer(1), left: strange) == nil)
        }
    }

    @Test("a used code with an unreadable end makes all records unknown")
    func unreadableCode() {
        func codes(_ parts: Reply...) -> UsedCodes? {
            RedisAnswer.attempts(.array([.integer(1), .array([]), .array(parts)]), now: Self.now)?.usedCodes
        }
        #expect(codes(text("seed"), text("1700000030000")) == UsedCodes(ends: ["seed": 1_700_000_030_000]))
        for strange: Reply in [.integer(5), .null, text("1e3"), text("9223372036854775808"), text("")] {
            #expect(codes(text("seed"), strange) == nil)
        }
        #expect(codes(text("seed")) == nil)
    }
}
