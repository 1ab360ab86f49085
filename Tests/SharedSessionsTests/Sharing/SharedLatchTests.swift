// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@testable import ChallengeClient
@testable import SharedSessions

@Suite("Latches that nodes share")
struct SharedLatchTests {
    private let key = LatchKey(origin: NodesOfTests.key.origin, challenge: "bank-pin", credential: "pin")
    private let rejected = Credential(name: "pin", fields: ["pin": Secret("9999")])
    private let now: Int64 = 1_000_000_000_000

    /// Returns the gate of a node, which shares its latches by digests that all nodes know.
    private func node() -> SharedAttemptGate {
        let digests = SharedDigests(sealing: OpenSealing(), canonical: NodesOfTests.canonical)
        return SharedAttemptGate(sharedDigests: { digests.digests(of: $1, rejectedFor: $0) }, now: { [now] in now })
    }

    private func isClosed(_ gate: SharedAttemptGate, _ credential: Credential? = nil, now: Int64? = nil) -> Bool {
        let use = CredentialUse(key: key, credential: credential ?? rejected)
        return gate.refusal(of: use, now: now ?? self.now) != nil
    }

    private func close(_ gate: SharedAttemptGate, _ reason: Latch.Reason = .rejected, opensAt: Int64? = nil) async {
        let latch = Latch(reason: reason, closedAt: now, opensAt: opensAt)
        await gate.record(.rejected(latch), of: CredentialUse(key: key, credential: rejected))
    }

    private func closed(_ gate: SharedAttemptGate) -> [String] {
        gate.closed(now: now, replacedIn: nil).map(\.challenge)
    }

    @Test("a latch closes on all nodes after the rejection at one, and opens on all")
    func closed() async throws {
        let nodes = try NodesOfTests(["9999", "9999"])
        defer { nodes.end() }
        let (one, other) = (nodes.nodes[0].services.gate, nodes.nodes[1].services.gate)
        await close(one)
        #expect(isClosed(one))
        #expect(await eventually { isClosed(other) })
        #expect(closed(other) == ["bank-pin"])
        #expect(!isClosed(other, Credential(name: "pin", fields: ["pin": Secret("1234")])))
        // A node whose credential has another value is not kept from anything.
        #expect(closed(other).isEmpty)

        #expect(other.unlatch("bank-pin") == 1)
        nodes.nodes[1].sharing.unlatch("bank-pin")
        #expect(await eventually { closed(one).isEmpty })
        #expect(!isClosed(other))
    }

    @Test("a value that another node saw rejected is not sent once the latches are read")
    func read() async {
        let (one, other) = (node(), node())
        await close(one)
        #expect(!isClosed(other))
        #expect(other.merge(SharedAttempts(count: 1, latches: one.read { $0.shared.unreportedLatches })).isEmpty)
        #expect(isClosed(other))
    }

    @Test("a value that another node saw rejected does not count as accepted any more, even once its latch is opened")
    func acceptance() async {
        let (one, other) = (node(), node())
        for value in ["9999", "1234"] {
            let use = CredentialUse(key: key, credential: Credential(name: "pin", fields: ["pin": Secret(value)]))
            _ = other.refusal(of: use, remaining: .unknown, keeping: 0, now: now)
            await other.record(.accepted(Acceptance(path: "/", at: now, wasAsked: true)), of: use)
            await close(one)
            _ = other.merge(SharedAttempts(count: 1, latches: one.read { $0.shared.unreportedLatches }))
            other.unlatch("bank-pin")
            #expect((other.acceptance(of: use) == nil) == (value == "9999"))
        }
    }

    @Test("a shared latch opens at the time that the server named")
    func opens() async throws {
        let nodes = try NodesOfTests(["9999", "9999"])
        defer { nodes.end() }
        let end: Int64 = 4_000_000_000_000
        await close(nodes.nodes[0].services.gate, .locked, opensAt: end)
        let other = nodes.nodes[1].services.gate
        #expect(await eventually { isClosed(other, now: end - 1) })
        #expect(!isClosed(other, now: end))
    }

    @Test("latches and codes are reported again to a store that lost them")
    func lost() {
        var latches = SharedLatches()
        let latch = SharedLatch(digest: "d", challenge: "bank-pin", latch: Latch(reason: .rejected, closedAt: now))
        let codes = UsedCodes(ends: ["seed": now])
        #expect(latches.merge(SharedAttempts(count: 7, latches: [latch], usedCodes: codes), now: now).isEmpty)
        #expect(latches.unreportedLatches.isEmpty && latches.unreportedCodes.ends.isEmpty)
        #expect(latches.merge(SharedAttempts(count: 0), now: now).isEmpty)
        #expect(latches.unreportedLatches == [latch] && latches.unreportedCodes == codes)
        latches.confirmLatches([latch])
        latches.confirmCodes(codes)
        #expect(latches.unreportedLatches.isEmpty && latches.unreportedCodes.ends.isEmpty)
        #expect(latches.merge(SharedAttempts(count: 1_700_000_000_001), now: now) == ["bank-pin"])
    }

    @Test("a one-time code that one node used is used on all")
    func steps() async throws {
        let nodes = try NodesOfTests(["1", "1"])
        defer { nodes.end() }
        let (one, other) = (nodes.nodes[0].services.gate, nodes.nodes[1].services.gate)
        let end: Int64 = 4_000_000_000_000
        let now = end - 30_000
        #expect(await one.use(code: "seed", stepEnding: end, isUsed: true, now: now) == nil)
        #expect(await eventually { await other.use(code: "seed", stepEnding: end, isUsed: false, now: now) == end })
        #expect(await other.use(code: "seed", stepEnding: end + 30_000, isUsed: false, now: now) == nil)
        // It is no latch that an operator would see, or open.
        #expect(closed(other).isEmpty)
    }
}
