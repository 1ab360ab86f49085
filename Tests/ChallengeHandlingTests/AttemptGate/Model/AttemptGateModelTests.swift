// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Attempt gate model")
struct AttemptGateModelTests {
    /// Runs schedules by seed; `GateRig(seed:)` repeats one that fails.
    @Test(
        "in any order of events there is one login at a time, nobody waits for nothing, no rejected credential goes out again, no accepted one is latched by a resource, the last attempt is kept, no code is used twice, and nobody gets another's session",
        arguments: 0..<8)
    func schedules(part: Int) {
        var answers = 0, shared = 0, unverifiedSessions = 0, rejections = 0, renewals = 0, latched = 0, givenUp = 0
        var confirmations = 0, remembered = 0, spared = 0, codes = 0, restarts = 0, together = 0, lost = 0
        for seed in (part * 300)..<((part + 1) * 300) {
            var rig = GateRig(seed: UInt64(seed))
            for step in 0..<150 {
                rig.step()
                guard rig.broken == nil else {
                    Issue.record("seed \(seed), step \(step): \(rig.broken ?? "")")
                    return
                }
            }
            rig.settle()
            guard rig.broken == nil else {
                Issue.record("seed \(seed), at the end: \(rig.broken ?? "")")
                return
            }
            answers += rig.counts.answers
            shared += rig.counts.shared
            unverifiedSessions += rig.counts.unverifiedSessions
            rejections += rig.counts.rejections
            renewals += rig.counts.renewals
            latched += rig.counts.latched
            confirmations += rig.counts.confirmations
            givenUp += rig.counts.givenUp
            remembered += rig.counts.remembered
            spared += rig.counts.spared
            codes += rig.counts.codes
            restarts += rig.counts.restarts
            together += rig.counts.together
            lost += rig.counts.lost
        }
        // The schedules reach the situations that they test.
        #expect(answers > 3_500)
        #expect(shared > 500)
        #expect(unverifiedSessions > 200)
        #expect(rejections > 200)
        #expect(renewals > 50)
        #expect(latched > 200)
        #expect(confirmations > 200)
        #expect(givenUp > 200)
        #expect(remembered > 20 && restarts > 200, "\(remembered), \(restarts)")
        #expect(spared > 20 && codes > 100, "\(spared), \(codes)")
        #expect(together > 50 && lost > 10, "\(together), \(lost)")
    }
}

extension GateRig {
    func failure(_ code: LoginFailure.Code, _ key: SessionKey) -> LoginFailure {
        LoginFailure(code, challenge: key.challenge, detail: "")
    }

    /// Counts of events, by which a test proves that its schedules were not idle.
    struct Counts {
        var answers = 0, logins = 0, unverifiedSessions = 0, rejections = 0, shared = 0, renewals = 0, latched = 0,
            givenUp = 0
        var confirmations = 0, resources = 0, remembered = 0, spared = 0, codes = 0, restarts = 0, together = 0,
            lost = 0
    }

    /// Records the first rule that is broken now.
    mutating func checkRules() {
        for (name, account) in server.accounts {
            // A value that the server never accepted is refused once; an accepted one is in doubt at first (rules 3 and 4).
            for (password, count) in account.refusals where count > 1 && !account.taken.contains(password) {
                broken = broken ?? "\(name)'s wrong password \(password) was sent \(count) times"
            }
            if account.codes.values.contains(where: { $0 > 1 }) { broken = broken ?? "\(name)'s code was used twice" }
        }
        // Logins of this challenge know how many attempts remain, and nothing else sends its passwords.
        for name in ["ann", "bob"] where server.accounts[name]?.remaining ?? 1 < 1 {
            broken = broken ?? "\(name)'s last attempt was used"
        }
        for exchange in exchanges.keys.sorted() {
            guard case .waiting(let key, _) = exchanges[exchange] else { continue }
            let isTried = exchanges.values.contains {
                if case .sent(key, _, _, isUnverified: true, _) = $0 { true } else { false }
            }
            let isConfirmed =
                confirmations.contains { $0.key.isSibling(of: key) } || writes.contains { $0.key.isSibling(of: key) }
            if !isTried, !isConfirmed, !logins.contains(where: { $0.key.isSibling(of: key) }) {
                broken = broken ?? "\(exchange) waits for \(key), and nobody will tell it"
            }
        }
        // A trial may outlast the discovery that its credential is wrong, and then overlap with the next trial.
        let tried = exchanges.values.compactMap {
            if case .sent(_, let held, _, isUnverified: true, _) = $0 { held.generation } else { nil }
        }
        if Set(tried).count < tried.count { broken = broken ?? "two try one session" }
    }
}
