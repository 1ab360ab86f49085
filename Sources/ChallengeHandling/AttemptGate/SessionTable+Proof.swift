// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Sessions that a login made without the server's word (Basic, Digest): one exchange tries each of them, while the others wait;
// a rejected credential is not sent twice (CONTRIBUTING, rules 1 and 3).
extension SessionTable {
    /// What an exchange found when it tried a session.
    public enum Proof: Sendable, Equatable {
        /// The server took it.
        case accepted
        /// The session is too old already; the credential was not judged.
        case outdated
        /// Nothing: the exchange ended before its answer, or that was 429 or 5xx.
        case undecided
    }

    /// Returns whether the session of that generation is one that the server has not accepted yet.
    func isUnverified(_ key: SessionKey, generation: UInt64) -> Bool { entries[key]?.trial?.generation == generation }

    /// The exchange `waiter` has tried the session of that generation. Returns who is to be told what.
    public mutating func judge(
        _ key: SessionKey, generation: UInt64, _ proof: Proof, by waiter: Waiter
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard let entry = entries[key], entry.prover == waiter else { return [] }
        version &+= 1
        entries[key]?.prover = nil
        guard let trial = entry.trial, trial.generation == generation else { return goOn(key) }
        switch proof {
        case .accepted: break
        case .outdated:
            entries[key]?.trial = nil
            return tellAll(key, .askAgain)
        case .undecided: return tryNext(key)
        }
        entries[key]?.trial = nil
        entries[key]?.held = trial
        entries[key]?.backOff = BackOff()
        return tellAll(key, .won(trial))
    }

    /// Nobody tries the session of `key` any more: the next does, or, where there is none left to be tried, all ask again.
    private mutating func goOn(_ key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        guard let entry = entries[key], entry.trial == nil, !entry.isWinning else { return tryNext(key) }
        return tellAll(key, .askAgain)
    }

    /// Hands the session on trial to the next who waits for it.
    mutating func tryNext(_ key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        guard var entry = entries[key], let trial = entry.trial, entry.prover == nil, !entry.isWinning else {
            return []
        }
        guard !entry.waiters.isEmpty else { return [] }
        let next = entry.waiters.removeFirst()
        waiterCount -= 1
        entry.prover = next
        entries[key] = entry
        return [(next, .prove(key, trial))]
    }
}
