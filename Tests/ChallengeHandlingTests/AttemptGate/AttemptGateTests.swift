// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
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
        // A later record of another process does not restore it.
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

    @Test("a refusal that was seen before a confirmation ended leads to no second confirmation of its resource")
    func seenBefore() throws {
        var gate = AttemptGate<Int>()
        #expect(gate.requestSession(session, rejected: nil, waiter: 1, now: 1) == .logIn)
        let cookie = InjectedField(name: .cookie, value: Secret("s=1"))
        _ = gate.sessions.finish(session, with: .success(Session(fields: [cookie])), now: 1, chance: 0)
        let held = try #require(gate.sessions.held(session))
        let use = RefusedUse(key: place, generation: held.generation)
        // Two workers look: neither finds a recorded refusal. Then the first has its confirmation made.
        for _ in 0..<2 {
            let isPassed = gate.passesChallenge(at: place, generation: held.generation, now: 2)
            #expect(!isPassed)
        }
        let first = gate.requestConfirmation(of: session, generation: held.generation, after: use, waiter: 1, now: 2)
        #expect(first == .confirm(held))
        _ = gate.confirmSession(session, generation: held.generation, .stillGood, after: use, now: 3)
        let second = gate.requestConfirmation(of: session, generation: held.generation, after: use, waiter: 2, now: 4)
        #expect(second == .keep)
        let elsewhere = RefusedUse(
            key: ResourceKey(resource: "GET /other", session: session), generation: held.generation)
        let other = gate.requestConfirmation(
            of: session, generation: held.generation, after: elsewhere, waiter: 3, now: 9_000)
        #expect(other == .confirm(held))
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
        #expect(gate.unlatch("other", now: 2).opened.isEmpty)
        #expect(gate.unlatch("bank", now: 2).opened == OpenedLatches(present: 1))
        #expect(gate.refusal(key, wrong, now: 2) == nil && gate.shared.unreportedLatches.isEmpty)
        #expect(gate.refusal(of: Secret("answer"), to: "bank") == nil)
        #expect(gate.requestSession(session, rejected: nil, waiter: 2, now: 2) == .logIn)
    }

    @Test("a refusal names the kind of the source to callers, and its path to operators")
    func source() throws {
        var gate = AttemptGate<Int>()
        _ = gate.record(.rejected(latch()), of: key, wrong)
        var refusal = try #require(gate.refusal(key, wrong, now: 0))
        refusal.source = AnsweringSource(kind: "the keyring", name: "the keyring /x", change: "Change it by `set`.")
        let unlatch = "If the value is right, correct the account at the server and run `countersign unlatch bank`."
        #expect(refusal.remedy == "The value came from the keyring. Change it by `set`. \(unlatch)")
        #expect(refusal.localRemedy == "The value came from the keyring /x. Change it by `set`. \(unlatch)")
        #expect(refusal.failure.detail == "\(refusal.why) \(refusal.remedy)")
        #expect(refusal.failure.cause == "The value came from the keyring /x.")
    }

    @Test("unlatching without a closed latch of a present value leaves a failing login as it is")
    func unlatchNothing() {
        var gate = AttemptGate<Int>()
        let failure = LoginFailure(.noCredential, challenge: "bank", detail: "")
        #expect(gate.requestSession(session, rejected: nil, waiter: 1, now: 1) == .logIn)
        _ = gate.sessions.finish(session, with: .failure(failure), now: 1, chance: 0)
        #expect(gate.unlatch("bank", now: 2).opened.isEmpty)
        #expect(gate.sessions.state(of: session, now: 2) == .failing(failure))
        _ = gate.record(.rejected(latch()), of: key, wrong)
        let earlier = gate.unlatch("bank", now: 2) { digest, name in digest == wrong.own && name == key.credential }
        #expect(earlier.opened == OpenedLatches(earlier: 1) && gate.refusal(key, wrong, now: 2) == nil)
        #expect(gate.sessions.state(of: session, now: 2) == .failing(failure))
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

@Suite("Login stampedes")
struct StampedeTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "pin")

    /// Returns the sorted times, in milliseconds, that `next` returns for each of 200 machines.
    private func times(seed: UInt64, _ next: (inout SessionTable<Int>, inout SplitMix) -> Int64?) -> [Int64] {
        var random = SplitMix(state: seed)
        return (0..<200).compactMap { _ in
            var table = SessionTable<Int>()
            return next(&table, &random)
        }.sorted()
    }

    /// Returns the largest number of `times` within one `span`.
    private func crowd(_ times: [Int64], within span: Int64) -> Int {
        times.map { start in times.count { (start..<start + span).contains($0) } }.max() ?? 0
    }

    /// Returns the first moment at which a login begins again, by bisection.
    private func firstTry(of table: SessionTable<Int>, after failure: Int64) -> Int64 {
        var (refused, begun) = (failure, failure + 60_001)
        while begun - refused > 1 {
            let middle = (refused + begun) / 2
            var copy = table
            if copy.request(key, rejected: nil, waiter: 1, now: middle) == .logIn {
                begun = middle
            } else {
                refused = middle
            }
        }
        return begun
    }

    @Test("machines whose logins failed together retry at different times", arguments: [1, 2, 5, 12])
    func outage(failures: Int) throws {
        let times = times(seed: 7) { table, random in
            var now: Int64 = 0
            for _ in 0..<failures {
                _ = table.request(key, rejected: nil, waiter: 1, now: now)
                let failure = LoginFailure(.timedOut, challenge: "bank", detail: "")
                _ = table.finish(
                    key, with: .failure(failure), now: now, chance: Double.random(in: 0..<1, using: &random))
                now = firstTry(of: table, after: now)
            }
            return now
        }
        let first = try #require(times.first), last = try #require(times.last)
        #expect(times.count == 200)
        #expect(first >= 500)
        // They spread over half a pause, and no tenth of that time has many of them.
        let width = last - first
        #expect(width >= min(60_000, 1_000 << Int64(failures - 1)) * 2 / 5)
        #expect(crowd(times, within: max(1, width / 10)) < 60)
    }

    @Test(
        "machines whose sessions began together renew them at different times, early enough"
    )
    func renewal() throws {
        for (life, lead) in [(Int64(3_600_000), Int64(30_000)), (50_000, 10_000)] {
            let times = times(seed: 11) { table, random in
                _ = table.request(key, rejected: nil, waiter: 1, now: 0)
                _ = table.finish(
                    key, with: .success(Session(expiresAt: life)), now: 0,
                    chance: Double.random(in: 0..<1, using: &random))
                return table.held(key)?.renewAt
            }
            #expect(times.allSatisfy { (life - lead...life - lead * 3 / 4).contains($0) })
            #expect(crowd(times, within: lead / 40) < 50)
        }
    }

    @Test("a session counts its renewals without a gap, and restarts the count after a gap")
    func renewals() {
        var table = SessionTable<Int>()
        for (now, count) in [(Int64(0), 0), (900, 1), (1_800, 2), (9_000, 0)] {
            _ = table.request(key, rejected: nil, waiter: 1, now: now)
            _ = table.finish(key, with: .success(Session(expiresAt: now + 1_000)), now: now, chance: 0)
            #expect(table.held(key)?.renewals == count)
        }
    }
}

@Suite("Shared pause after a failed login")
struct SharedPauseTests {
    private let limits = SessionLimits(firstPause: 1_000, longestPause: 60_000)

    private func pause(_ code: LoginFailure.Code, retryIn: Int64? = nil, isCancelled: Bool = false) -> [Int64]? {
        let failure = LoginFailure(
            code, challenge: "bank", detail: "No.", retryAt: retryIn.map { 50_000 + $0 }, isCancelled: isCancelled)
        return limits.sharedPause(after: failure, now: 50_000).map { [$0.first, $0.longest] }
    }

    @Test("the shared pause of an unknown outcome grows from the first pause or the server's time, up to an hour")
    func unknown() {
        for code in [LoginFailure.Code.failed, .timedOut, .upstreamTLS] {
            #expect(pause(code) == [1_000, 60_000])
            #expect(pause(code, retryIn: 90_000) == [90_000, 90_000])
            #expect(pause(code, retryIn: -5) == [1_000, 60_000])
            #expect(pause(code, retryIn: 1 << 40) == [3_600_000, 3_600_000])
        }
    }

    @Test("a locked account is checked rarely by other nodes")
    func locked() {
        for code in [LoginFailure.Code.accountLocked, .attemptsKept] {
            #expect(pause(code) == [5_000, 60_000])
            #expect(pause(code, retryIn: 30_000) == [30_000, 60_000])
        }
    }

    @Test("a rejection is shared for a moment, and a failure of one node alone is not shared")
    func rejected() {
        #expect(pause(.rejected, retryIn: 90_000) == [2_000, 2_000])
        #expect(pause(.latched) == nil)
        #expect(pause(.noCredential) == nil)
        #expect(pause(.failed, isCancelled: true) == nil)
    }
}
