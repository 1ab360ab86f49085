// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// A challenge in answer to a request with a session that worked says something about that one resource, or about the session. One
// confirmation for all who met one finds out; the session serves meanwhile (CONTRIBUTING, rule 4).
extension SessionTable {
    /// What an exchange does after a challenge in answer to a request with a held session.
    public enum Doubt: Sendable, Equatable {
        /// The exchange waits; the driver asks if the session still works, and tells the result by `confirm`.
        case confirm(HeldSession)
        /// The session stays, and the challenge is the answer: a moment ago nothing could be learned.
        case keep
        /// The session is not held any more: request another one.
        case over
        /// Too many wait already.
        case overloaded
        /// The exchange waits for the confirmation or the login that runs.
        case wait
    }

    /// After so many confirmations in a row without a usable answer the session counts as over: a login can tell more.
    static var mostUnknown: Int { 3 }

    /// Doubts the session of that generation, because a request with it was answered by its challenge.
    ///
    /// A session that is nothing but a credential (`Session.use`) is hidden until the answer, so that a value which the server may not
    /// accept any more is sent by the confirmation alone.
    public mutating func doubt(_ key: SessionKey, generation: UInt64, waiter: Waiter, now: Int64) -> Doubt {
        guard var entry = entries[key] else { return .over }
        if let held = entry.held, held.generation == generation, held.session.use != nil {
            entry.trial = held
            entry.held = nil
            version &+= 1
        }
        let isTrial = entry.trial?.generation == generation
        guard let session = isTrial ? entry.trial : entry.held, session.generation == generation,
            !session.isExpired(at: now)
        else { return .over }
        if let last = entry.unconfirmed, last.generation == generation, now < last.until { return .keep }
        // Who tries a session has left the place of one who waits.
        guard waiterCount < limits.waiters || isTrial && entry.prover == waiter else { return .overloaded }
        waiterCount += 1
        entry.waiters.append(waiter)
        if isTrial, entry.prover == waiter { entry.prover = nil }
        let leads = !entry.isWinning && entry.prover == nil && !isWinning(siblingOf: key)
        // No login and no renewal begins meanwhile.
        if leads { entry.isWinning = true }
        entries[key] = entry
        return leads ? .confirm(session) : .wait
    }

    /// Ends the confirmation of the session of that generation. Returns who is to be told what.
    public mutating func confirm(
        _ key: SessionKey, generation: UInt64, _ confirmation: SessionConfirmation, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        version &+= 1
        entries[key]?.isWinning = false
        if let trial = entries[key]?.trial, trial.generation == generation {
            return confirm(key, trial, confirmation, now: now)
        }
        guard let held = entries[key]?.held, held.generation == generation else {
            return tellAll(key, .askAgain) + wakeSiblings(of: key)
        }
        let last = entries[key]?.unconfirmed.flatMap { $0.generation == generation ? $0 : nil }
        switch confirmation {
        case .unknown where (last?.count ?? 0) + 1 >= Self.mostUnknown, .over:
            entries[key]?.held = nil
            return tellAll(key, .askAgain) + wakeSiblings(of: key)
        case .stillGood:
            entries[key]?.unconfirmed = nil
            return tellAll(key, .kept(held, isConfirmed: true)) + wakeSiblings(of: key)
        case .unknown:
            let end = now.addingReportingOverflow(limits.confirmationPause)
            entries[key]?.unconfirmed = (
                generation, end.overflow ? .max : end.partialValue, (last?.count ?? 0) + 1
            )
            return tellAll(key, .kept(held, isConfirmed: false)) + wakeSiblings(of: key)
        }
    }

    /// Ends the confirmation of a session that is a credential. Refused, it is dropped; the driver closes its latch first.
    private mutating func confirm(
        _ key: SessionKey, _ trial: HeldSession, _ confirmation: SessionConfirmation, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        entries[key]?.trial = nil
        switch confirmation {
        case .over:
            return tellAll(key, .askAgain) + wakeSiblings(of: key)
        case .stillGood:
            entries[key]?.held = trial
            entries[key]?.backOff = BackOff()
            return tellAll(key, .kept(trial, isConfirmed: true)) + wakeSiblings(of: key)
        case .unknown:
            let failure = LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server refused the credential at one address, and no other could tell if it still accepts it. "
                    + "Name an address that every accepted user may GET by `prove-at`.")
            return finish(key, with: .failure(failure), now: now, chance: 0)
        }
    }

    /// Returns whether a session of `key` is there: held, or hidden until its confirmation is over.
    package func isThere(_ key: SessionKey) -> Bool {
        guard let entry = entries[key] else { return false }
        return entry.held != nil || entry.isWinning && entry.trial != nil
    }

    /// The session in doubt was rejected, and its latch is closed. Returns who is to be told so.
    public mutating func reject(
        _ key: SessionKey, generation: UInt64, _ failure: LoginFailure, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        if entries[key]?.trial?.generation == generation { entries[key]?.trial = nil }
        return finish(key, with: .failure(failure), now: now, chance: 0)
    }
}
