// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("The attempt gate")
struct AttemptGateTests {
    private static let origin = Origin(scheme: .https, host: "bank.example")
    private let key = LatchKey(origin: origin, challenge: "bank", credential: "ann")
    private let session = SessionKey(origin: origin, challenge: "bank", credential: "ann")
    private let wrong = AttemptDigests(own: [1], shared: ["one"])
    private let right = AttemptDigests(own: [2], shared: ["two"])
    private let place = ResourceKey(
        resource: "GET /admin", session: SessionKey(origin: origin, challenge: "bank", credential: "ann"))

    private func latch(_ reason: Latch.Reason = .rejected, opensAt: Int64? = nil) -> Latch {
        Latch(reason: reason, closedAt: 1_000, opensAt: opensAt)
    }

    @Test("the attempt gate gives the reason, end and remedy of a refusal")
    func refusal() {
        var gate = AttemptGate<Int>()
        #expect(gate.refusal(key, wrong, now: 0) == nil)
        #expect(gate.record(.rejected(latch(opensAt: 5_000)), of: key, wrong) != nil)
        let refusal = gate.refusal(key, wrong, now: 4_999)
        #expect(refusal?.why.contains("\"ann\" at 1970-01-01 00:00:01 UTC") == true && refusal?.until == 5_000)
        #expect(refusal?.remedy == "Change the credential, or run `countersign unlatch bank`.")
        #expect(refusal?.failure.code == .latched && refusal?.failure.latch == key)
        #expect(gate.refusal(key, right, now: 4_999) == nil)
        #expect(gate.refusal(key, wrong, now: 5_000) == nil)
    }

    @Test("the attempt gate stores that a rejected value no longer counts as accepted")
    func mark() {
        var gate = AttemptGate<Int>()
        var kept = AttemptRecord()
        func keep(_ change: AttemptChange?) { if let change { kept.apply(change) } }
        keep(gate.record(.accepted(Acceptance(path: "/a", at: 0)), of: key, wrong))
        #expect(gate.acceptance(key, wrong)?.path == "/a" && kept == gate.record)
        keep(gate.record(.rejected(latch()), of: key, wrong))
        #expect(gate.acceptance(key, wrong) == nil && kept == gate.record)
        // What another process has kept since does not bring it back.
        var other = AttemptRecord()
        other.apply(.accept(key, digest: [1], Acceptance(path: "/a", at: 0)))
        gate.merge(other, then: [.close(key, digest: [1], latch())])
        #expect(gate.acceptance(key, wrong) == nil)
        let later = AttemptGate<Int>(record: kept)
        #expect(later.refusal(key, wrong, now: 2_000) != nil)
    }

    @Test(
        "the attempt gate keeps the last attempts, even if their number is unreadable",
        arguments: [
            (.unknown, 1, false), (.count(2), 1, false), (.count(1), 1, true), (.count(0), 1, true),
            (.count(1), 0, false),
            (.unreadable, 1, true), (.unreadable, 0, false), (.count(3), 3, true),
        ] as [(SecurityCheckChallenge.RemainingAttempts, Int, Bool)])
    func attempts(remaining: SecurityCheckChallenge.RemainingAttempts, keeping: Int, isRefused: Bool) {
        let gate = AttemptGate<Int>()
        let refusal = gate.refusal(key, right, remaining: remaining, keeping: keeping, now: 0)
        #expect((refusal?.failure.code == .attemptsKept) == isRefused)
        #expect(refusal?.failure.latch == nil)
    }

    @Test("the refusal of an unverified session is judged, even if its resource refused the previous session")
    func unverified() throws {
        var gate = AttemptGate<Int>()
        gate.refusals.recordRefusal(RefusedUse(key: place, generation: 0), now: 0)
        let use = CredentialUse(key: key, credential: Credential(name: "ann", fields: [:]))
        #expect(gate.requestSession(session, rejected: nil, waiter: 1, now: 1) == .logIn)
        let told = gate.sessions.finish(session, with: .success(Session(unverified: use)), now: 1, chance: 0)
        guard case .verify(_, let held)? = told.first?.outcome else {
            throw LoginFailure(.failed, challenge: "", detail: "")
        }
        let isPassed = gate.passesChallenge(at: place, generation: held.generation, now: 2)
        #expect(!isPassed)
        _ = gate.sessions.recordVerification(
            of: session, generation: held.generation, .accepted, by: 1, now: 0, chance: 0)
        let isPassedLater = gate.passesChallenge(at: place, generation: held.generation, now: 2)
        #expect(isPassedLater)
    }

    @Test(
        "unlatching a challenge opens its latches, also for other nodes and answers, and ends its pauses"
    )
    func unlatch() {
        var gate = AttemptGate<Int>()
        _ = gate.record(.rejected(latch()), of: key, wrong)
        gate.record(Secret("answer"), to: "bank", acceptedAt: nil)
        #expect(gate.refusal(of: Secret("answer"), to: "bank")?.failure.code == .latched)
        #expect(gate.requestSession(session, rejected: nil, waiter: 1, now: 1) == .logIn)
        let failure = LoginFailure(.accountLocked, challenge: "bank", detail: "")
        _ = gate.sessions.finish(session, with: .failure(failure), now: 1, chance: 0)
        #expect(gate.requestSession(session, rejected: nil, waiter: 2, now: 2) == .refuse(failure))
        #expect(gate.unlatch("other", now: 2).opened == 0)
        #expect(gate.unlatch("bank", now: 2).opened == 1)
        #expect(gate.refusal(key, wrong, now: 2) == nil && gate.shared.unreportedLatches.isEmpty)
        #expect(gate.refusal(of: Secret("answer"), to: "bank") == nil)
        #expect(gate.requestSession(session, rejected: nil, waiter: 2, now: 2) == .logIn)
    }

    @Test("the list of closed latches has present values only, and other nodes' latches once")
    func closed() {
        var gate = AttemptGate<Int>()
        _ = gate.record(.rejected(latch()), of: key, wrong)
        let shared = SharedLatch(digest: "three", challenge: "other", latch: latch(.locked))
        _ = gate.shared.merge(SharedAttempts(count: 1, latches: [shared]), now: 0)
        let closed = gate.closed(now: 2_000) { _, _ in false }
        #expect(closed.map(\.challenge) == ["bank", "other"] && closed.map(\.key) == [key, nil])
        #expect(closed.last?.refusal.why.contains("the account of a credential of another node") == true)
        #expect(gate.closed(now: 2_000) { digest, _ in digest == [1] }.map(\.challenge) == ["other"])
    }

    @Test("a step of a one-time password is used once across nodes, and a check uses none")
    func codes() {
        var gate = AttemptGate<Int>()
        #expect(gate.use(code: "s", stepEnding: 30_000, isUsed: false, now: 1_000).usedUntil == nil)
        #expect(gate.use(code: "s", stepEnding: 30_000, isUsed: true, now: 1_000).change != nil)
        #expect(gate.use(code: "s", stepEnding: 30_000, isUsed: true, now: 2_000).usedUntil == 30_000)
        var other = AttemptGate<Int>()
        _ = other.shared.merge(
            SharedAttempts(
                count: 1, latches: gate.shared.unreportedLatches, usedCodes: gate.shared.unreportedCodes), now: 2_000)
        #expect(other.use(code: "s", stepEnding: 30_000, isUsed: true, now: 2_000).usedUntil == 30_000)
        #expect(other.closed(now: 2_000) { _, _ in false }.isEmpty)
    }
}
