// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Secrets
import TestSupport
import Testing

@Suite("Latches that hosts share")
struct FleetLatchTests {
    private let key = LatchKey(origin: FleetOfTests.key.origin, challenge: "bank-pin", credential: "pin")
    private let rejected = Credential(name: "pin", fields: ["pin": Secret("9999")])
    private let now: Int64 = 1_000_000_000_000

    private func isClosed(_ host: FleetOfTests.Host) -> Bool {
        host.fleet.latches.closedLatch(key, for: rejected, now: now) != nil
    }

    @Test("close on all hosts when one of them is told that a value is wrong, and open on all")
    func closed() async throws {
        let fleet = try FleetOfTests(["9999", "9999"])
        defer { fleet.end() }
        fleet.hosts[0].fleet.latches.close(key, for: rejected, Latch(reason: .rejected, closedAt: now))
        #expect(isClosed(fleet.hosts[0]))
        #expect(await eventually { isClosed(fleet.hosts[1]) })
        #expect(fleet.hosts[1].fleet.latches.closed(now: now).map(\.challenge) == ["bank-pin"])
        let other = Credential(name: "pin", fields: ["pin": Secret("1234")])
        #expect(fleet.hosts[1].fleet.latches.closedLatch(key, for: other, now: now) == nil)
        // A host whose credential has another value is not kept from anything.
        #expect(fleet.hosts[1].fleet.latches.closed(now: now).isEmpty)

        #expect(fleet.hosts[1].fleet.unlatch("bank-pin") == 1)
        #expect(await eventually { fleet.hosts[0].fleet.latches.closed(now: now).isEmpty })
        #expect(!isClosed(fleet.hosts[1]))
    }

    @Test("keep a value at home as soon as they are read that another host was told is wrong")
    func read() {
        func host() -> FleetLatches {
            FleetLatches(
                local: MemoryLatches(),
                digests: FleetDigests(sealing: OpenSealing(), canonical: FleetOfTests.canonical),
                now: { [now] in now })
        }
        let (one, other) = (host(), host())
        one.close(key, for: rejected, Latch(reason: .rejected, closedAt: now))
        #expect(other.closedLatch(key, for: rejected, now: now) == nil)
        #expect(other.read(one.untold, count: 1).isEmpty)
        #expect(other.closedLatch(key, for: rejected, now: now)?.reason == .rejected)
    }

    @Test("open by themselves where the server said when")
    func opens() async throws {
        let fleet = try FleetOfTests(["9999", "9999"])
        defer { fleet.end() }
        let end: Int64 = 4_000_000_000_000
        fleet.hosts[0].fleet.latches.close(key, for: rejected, Latch(reason: .locked, closedAt: now, opensAt: end))
        let latches = fleet.hosts[1].fleet.latches
        #expect(await eventually { latches.closedLatch(key, for: rejected, now: end - 1) != nil })
        #expect(latches.closedLatch(key, for: rejected, now: end) == nil)
    }

    @Test("an engine that has lost them is told again")
    func lost() async throws {
        let fleet = try FleetOfTests(["9999"])
        defer { fleet.end() }
        let latches = fleet.hosts[0].fleet.latches
        let latch = SharedLatch(digest: "d", challenge: "bank-pin", latch: Latch(reason: .rejected, closedAt: now))
        #expect(latches.read([latch], count: 7).isEmpty && latches.untold.isEmpty)
        #expect(latches.read([], count: 0).isEmpty)
        #expect(latches.untold == [latch])
        latches.told([latch])
        #expect(latches.untold.isEmpty)
        #expect(latches.read([], count: 1_700_000_000_001) == ["bank-pin"])
    }

    @Test("the step of a one-time password that one host has used is used on all")
    func steps() async throws {
        let fleet = try FleetOfTests(["1", "1"])
        defer { fleet.end() }
        let kept = MemoryStore()
        let own = FleetSteps(local: kept, latches: fleet.hosts[0].fleet.latches)
        let end: Int64 = 4_000_000_000_000
        let steps = JSONValue.object(["seed": .integer(end), "old": .integer(1)])
        try own.save(Secret(steps.serialized()), as: TimedPasswords.stateName)
        try own.save(Secret("x"), as: "another")
        #expect(Set(kept.names) == [TimedPasswords.stateName, "another"])
        let others = FleetSteps(local: MemoryState(), latches: fleet.hosts[1].fleet.latches)
        #expect(
            await eventually {
                let value = try? others.load(TimedPasswords.stateName)
                return value.flatMap { JSONValue(parsing: $0.revealBytes()) } == .object(["seed": .integer(end)])
            })
        #expect(try others.load("another") == nil)
        // It is no latch that an operator would see, or open.
        #expect(fleet.hosts[1].fleet.latches.closed(now: now).isEmpty)
    }
}
