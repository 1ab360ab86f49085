// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Latches that hosts share")
struct FleetLatchTests {
    private let key = LatchKey(origin: FleetOfTests.key.origin, challenge: "bank-pin", credential: "pin")
    private let rejected = Credential(name: "pin", fields: ["pin": Secret("9999")])
    private let now: Int64 = 1_000_000_000_000

    private func isClosed(_ gate: SharedAttemptGate, _ credential: Credential? = nil, now: Int64? = nil) -> Bool {
        let use = CredentialUse(key: key, credential: credential ?? rejected)
        return gate.refusal(of: use, now: now ?? self.now) != nil
    }

    private func close(_ gate: SharedAttemptGate, _ reason: Latch.Reason = .rejected, opensAt: Int64? = nil) {
        let latch = Latch(reason: reason, closedAt: now, opensAt: opensAt)
        gate.note(.rejected(latch), of: CredentialUse(key: key, credential: rejected))
    }

    private func closed(_ gate: SharedAttemptGate) -> [String] {
        gate.closed(now: now, replacedIn: nil).map(\.challenge)
    }

    @Test("close on all hosts when one of them is told that a value is wrong, and open on all")
    func closed() async throws {
        let fleet = try FleetOfTests(["9999", "9999"])
        defer { fleet.end() }
        let (one, other) = (fleet.hosts[0].services.gate, fleet.hosts[1].services.gate)
        close(one)
        #expect(isClosed(one))
        #expect(await eventually { isClosed(other) })
        #expect(closed(other) == ["bank-pin"])
        #expect(!isClosed(other, Credential(name: "pin", fields: ["pin": Secret("1234")])))
        // A host whose credential has another value is not kept from anything.
        #expect(closed(other).isEmpty)

        #expect(other.unlatch("bank-pin") == 1)
        fleet.hosts[1].fleet.unlatch("bank-pin")
        #expect(await eventually { closed(one).isEmpty })
        #expect(!isClosed(other))
    }

    @Test("keep a value at home as soon as they are read that another host was told is wrong")
    func read() {
        let digests = FleetDigests(sealing: OpenSealing(), canonical: FleetOfTests.canonical)
        func host() -> SharedAttemptGate {
            SharedAttemptGate(sharedDigests: { digests.digests(of: $1, rejectedFor: $0) }, now: { [now] in now })
        }
        let (one, other) = (host(), host())
        close(one)
        #expect(!isClosed(other))
        #expect(other.read(one.read { $0.shared.untold }, count: 1).isEmpty)
        #expect(isClosed(other))
    }

    @Test("open by themselves where the server said when")
    func opens() async throws {
        let fleet = try FleetOfTests(["9999", "9999"])
        defer { fleet.end() }
        let end: Int64 = 4_000_000_000_000
        close(fleet.hosts[0].services.gate, .locked, opensAt: end)
        let other = fleet.hosts[1].services.gate
        #expect(await eventually { isClosed(other, now: end - 1) })
        #expect(!isClosed(other, now: end))
    }

    @Test("an engine that has lost them is told again")
    func lost() {
        var latches = SharedLatches()
        let latch = SharedLatch(digest: "d", challenge: "bank-pin", latch: Latch(reason: .rejected, closedAt: now))
        #expect(latches.read([latch], count: 7, now: now).isEmpty && latches.untold.isEmpty)
        #expect(latches.read([], count: 0, now: now).isEmpty)
        #expect(latches.untold == [latch])
        latches.told([latch])
        #expect(latches.untold.isEmpty)
        #expect(latches.read([], count: 1_700_000_000_001, now: now) == ["bank-pin"])
    }

    @Test("the step of a one-time password that one host has used is used on all")
    func steps() async throws {
        let fleet = try FleetOfTests(["1", "1"])
        defer { fleet.end() }
        let (one, other) = (fleet.hosts[0].services.gate, fleet.hosts[1].services.gate)
        let end: Int64 = 4_000_000_000_000
        let now = end - 30_000
        #expect(one.use(code: "seed", stepEnding: end, isUsed: true, now: now) == nil)
        #expect(await eventually { other.use(code: "seed", stepEnding: end, isUsed: false, now: now) == end })
        #expect(other.use(code: "seed", stepEnding: end + 30_000, isUsed: false, now: now) == nil)
        // It is no latch that an operator would see, or open.
        #expect(closed(other).isEmpty)
    }
}
