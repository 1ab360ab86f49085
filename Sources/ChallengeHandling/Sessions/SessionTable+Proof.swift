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

    /// What is to be done about a refusal.
    public enum Refusal: Sendable {
        /// Close the latch of this use, then say so by `finish`.
        case close(CredentialUse)
        /// The credential was accepted before, so that this may be a matter of the one resource: the refusal goes to the caller.
        case doubt
        /// A newer session is there.
        case old
    }

    /// How many refusals at one route alone are taken for a matter of that route.
    static var mostDoubts: Int { 2 }

    /// The exchange `waiter` has tried the session of that generation. Returns who is to be told what.
    public mutating func judge(
        _ key: SessionKey, generation: UInt64, _ proof: Proof, by waiter: Waiter
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard let entry = entries[key], entry.prover == waiter else { return [] }
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
        entries[key]?.accepted = trial.session.use?.fingerprint
        entries[key]?.doubts = []
        entries[key]?.heldUntil = 0
        entries[key]?.failure = nil
        entries[key]?.failures = 0
        return tellAll(key, .won(trial))
    }

    /// A request with the session of that generation was refused at `route`, a number for it, and another login would send the
    /// same. Until `judge` says otherwise the session is used by one exchange at a time.
    ///
    /// A credential that was accepted before is in doubt at first; refused elsewhere, too, or here for the third time, it has
    /// been changed or locked at the server.
    public mutating func refuse(
        _ key: SessionKey, generation: UInt64, route: Int, by waiter: Waiter
    ) -> (refusal: Refusal, told: [(waiter: Waiter, outcome: Outcome)]) {
        guard var entry = entries[key] else { return (.old, []) }
        if let held = entry.held, held.generation == generation {
            entry.accepted = held.session.use?.fingerprint
            entry.trial = held
            entry.held = nil
        } else if entry.trial?.generation != generation {
            guard entry.prover == waiter else { return (.old, []) }
            // What it tried is gone meanwhile; nobody may wait for it any longer.
            entries[key]?.prover = nil
            return (.old, goOn(key))
        }
        if entry.prover == waiter { entry.prover = nil }
        guard let use = entry.trial?.session.use else { return (.old, []) }
        entry.doubts.append(route)
        let isElsewhere = entry.doubts.contains { $0 != route }
        let wasAccepted = entry.accepted == use.fingerprint
        let isOver = !wasAccepted || isElsewhere || entry.doubts.count > Self.mostDoubts
        if isOver {
            entry.trial = nil
            // Another may be trying it right now: what it finds is known already.
            entry.prover = nil
            entry.doubts = []
            entry.accepted = nil
            // Whoever waits goes on waiting for `finish`, which comes next; nobody leads meanwhile.
            entry.isWinning = true
        }
        entries[key] = entry
        return isOver ? (.close(use), []) : (.doubt, tryNext(key))
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
