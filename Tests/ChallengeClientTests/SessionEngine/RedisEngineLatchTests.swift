// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import ChallengeClient

@Suite("Latches of a fleet", .timeLimit(.minutes(10)))
struct RedisEngineLatchTests {
    @Test("come back as they were closed, until they are opened by their challenge")
    func roundTrip() async throws {
        let server = try await RedisServer()
        let rig = try await EngineRig(server)
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
            case .granted(_, rest.count)? = await rig.ask(.acquire(after: 0, token: LeaseToken("t"), life: .seconds(1)))
        else {
            Issue.record("the count is not told with a lease")
            return
        }
    }

    @Test("one whose time is over is none, and is not closed")
    func expired() async throws {
        let server = try await RedisServer()
        let rig = try await EngineRig(server)
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

    @Test("are bounded: beyond, those go that closed first")
    func bounded() async throws {
        let server = try await RedisServer()
        let rig = try await EngineRig(server)
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
}
