// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

// Unverified sessions (Basic, Digest) of a value that was never accepted: one exchange tries each of them, while the others wait;
// a rejected credential is not sent twice (CONTRIBUTING, rules 1, 3 and 4).
extension SessionTable {
    /// Result of an exchange that tried a session.
    public enum VerificationResult: Sendable, Equatable {
        /// The server accepted the session.
        case accepted
        /// The session has expired, which says nothing about the credential.
        case outdated
        /// Nothing was sent, or the response says nothing about the credential: another exchange may try at once.
        case undecided
        /// Unknown: the request was sent, and no usable response came; another exchange tries at its own address.
        case unanswered(UnansweredTrial)
    }

    func isUnverified(_ key: SessionKey, generation: UInt64) -> Bool {
        entries[key]?.unverified?.generation == generation
    }

    /// Returns true if the session of that generation sends a credential that no answer has accepted since the login.
    func lacksAcceptance(_ key: SessionKey, generation: UInt64) -> Bool {
        guard let held = entries[key]?.held, held.generation == generation else {
            return isUnverified(key, generation: generation)
        }
        return held.session.use != nil && !held.acceptance.isKnown
    }

    /// Returns true while a login or a confirmation of `key` runs, or a request tries its session.
    package func isUndecided(_ key: SessionKey) -> Bool {
        entries[key].map { $0.isLoggingIn || !$0.trials.isEmpty } ?? false
    }

    /// Returns true if the session of that generation was dropped or replaced; false also while it is hidden.
    package func isOutdated(_ key: SessionKey, generation: UInt64) -> Bool {
        entries[key]?.held?.generation != generation && !isUnverified(key, generation: generation)
    }

    /// Records the result of an exchange that tried a session, and returns the waiters to notify.
    ///
    /// `chance` is a random number in 0..<1. The first of several trials at once decides; the results of the others do not count.
    public mutating func recordVerification(
        of key: SessionKey, generation: UInt64, _ result: VerificationResult, by waiter: Waiter, now: Int64,
        chance: Double
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard var entry = entries[key], entry.trials.contains(waiter) else { return [] }
        version &+= 1
        if case .unanswered = result {
            entry.trials.end(waiter, isFruitless: true, now: now)
        } else {
            entry.trials.end(waiter, isFruitless: false, now: now)
        }
        entries[key] = entry
        guard let unverified = entry.unverified, unverified.generation == generation else {
            return resumeVerification(of: key, now: now)
        }
        switch result {
        case .accepted: break
        case .outdated:
            entries[key]?.trials.decided()
            entries[key]?.unverified = nil
            return dequeueWaiters(of: key, with: .askAgain)
        case .undecided: return assignVerifier(of: key, now: now)
        case .unanswered(let trial):
            guard let retryAt = entry.trials.exhaustedUntil(now: now) else { return assignVerifier(of: key, now: now) }
            // One that is late may still decide.
            guard entry.trials.isEmpty else { return [] }
            let failure = trial.failure(of: key.challenge, after: SessionTrials<Waiter>.most, retryAt: retryAt)
            entry.unverified = nil
            entry.backOff.record(failure, limits, now: now, chance: chance)
            entries[key] = entry
            return dequeueWaiters(of: key, with: .failed(failure))
        }
        unverified.acceptance.isShown()
        entries[key]?.trials = SessionTrials()
        entries[key]?.unverified = nil
        entries[key]?.held = unverified
        entries[key]?.backOff = BackOff()
        return dequeueWaiters(of: key, with: .established(unverified))
    }

    /// Records that an exchange that tries a session has had no answer for a while; the next waiter tries it, too.
    package mutating func recordSilence(
        of key: SessionKey, generation: UInt64, by waiter: Waiter, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard entries[key]?.unverified?.generation == generation,
            entries[key]?.trials.becameSilent(waiter, now: now) == true
        else { return [] }
        return assignVerifier(of: key, now: now)
    }

    /// Assigns the session to the next waiter; without an unverified session, all waiters ask again.
    private mutating func resumeVerification(of key: SessionKey, now: Int64) -> [(waiter: Waiter, outcome: Outcome)] {
        guard let entry = entries[key], entry.unverified == nil, !entry.isLoggingIn, entry.trials.isEmpty else {
            return assignVerifier(of: key, now: now)
        }
        return dequeueWaiters(of: key, with: .askAgain)
    }

    /// Assigns the unverified session to the next waiter, rather to one at an address where no trial was fruitless.
    ///
    /// If nobody tries it and no waiter may, the waiters fail.
    mutating func assignVerifier(of key: SessionKey, now: Int64) -> [(waiter: Waiter, outcome: Outcome)] {
        guard var entry = entries[key], let unverified = entry.unverified, !entry.isLoggingIn, !entry.waiters.isEmpty
        else { return [] }
        let next =
            entry.waiters.firstIndex { entry.trials.allows($0.address, isFresh: true, now: now) }
            ?? entry.waiters.firstIndex { entry.trials.allows($0.address, now: now) }
        if let next {
            let (waiter, address) = entry.waiters.remove(at: next)
            waiterCount -= 1
            entry.trials.start(waiter, at: address)
            entries[key] = entry
            return [(waiter, .verify(key, unverified))]
        }
        guard entry.trials.isEmpty else { return [] }
        let waiters = entry.waiters
        entries[key]?.waiters = []
        waiterCount -= waiters.count
        return waiters.map { waiter, address in
            let retryAt = entry.trials.refusedUntil(address, now: now) ?? entry.trials.exhaustedUntil(now: now)
            return (waiter, .failed(.fruitlessAddress(of: key.challenge, retryAt: retryAt ?? now)))
        }
    }
}

// A challenge in response to a request with a working session concerns either that resource or the session. One
// confirmation decides for all exchanges that met a challenge, while the session stays in use (CONTRIBUTING, rule 4).
extension SessionTable {
    /// Action of an exchange whose held session met a challenge.
    public enum ConfirmationAnswer: Sendable, Equatable {
        /// Wait, while the driver checks if the session still works and reports the result to `confirm`.
        case confirm(HeldSession)
        /// Keep the session and pass on the challenge: a recent check gave no result.
        case keep
        /// Request another session, because this one is not held any more.
        case over
        /// Fail, because too many exchanges wait.
        case overloaded
        /// Wait for the running confirmation or login.
        case wait
    }

    /// Maximum confirmations in a row without a usable answer, after which a login must decide.
    static var mostUnknown: Int { 3 }

    /// Requests the confirmation of a session after a request with that session met a challenge.
    ///
    /// A session that consists of a credential (`Session.use`) is hidden until the result, so that only the confirmation sends a
    /// value which the server may no longer accept.
    public mutating func requestConfirmation(of key: SessionKey, generation: UInt64, waiter: Waiter, now: Int64)
        -> ConfirmationAnswer
    {
        guard var entry = entries[key] else { return .over }
        if let held = entry.held, held.generation == generation, held.session.use != nil {
            entry.unverified = held
            entry.held = nil
            version &+= 1
        }
        let isUnverified = entry.unverified?.generation == generation
        guard let session = isUnverified ? entry.unverified : entry.held, session.generation == generation,
            !session.isExpired(at: now)
        else { return .over }
        if let last = entry.unconfirmed, last.generation == generation, now < last.until { return .keep }
        // The verifier of a session has left the queue.
        let isVerifier = isUnverified && entry.trials.contains(waiter)
        guard waiterCount < limits.waiters || isVerifier else { return .overloaded }
        waiterCount += 1
        entry.waiters.append((waiter, nil))
        // The first refusal decides about the trials.
        if isVerifier { entry.trials.decided() }
        let leads = !entry.isLoggingIn && entry.trials.isEmpty && !isLoggingIn(siblingOf: key)
        if leads {
            // Prevents a login or renewal in the meantime.
            entry.isLoggingIn = true
            confirmations += 1
            entry.confirmation = confirmations
        }
        entries[key] = entry
        return leads ? .confirm(session) : .wait
    }

    /// Ends the confirmation of a session, and returns the waiters to notify.
    public mutating func confirm(
        _ key: SessionKey, generation: UInt64, _ confirmation: SessionConfirmation, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        version &+= 1
        entries[key]?.isLoggingIn = false
        if let unverified = entries[key]?.unverified, unverified.generation == generation {
            return confirm(key, unverified, confirmation, now: now)
        }
        guard let held = entries[key]?.held, held.generation == generation else {
            return dequeueWaiters(of: key, with: .askAgain) + dequeueSiblingWaiters(of: key)
        }
        let last = entries[key]?.unconfirmed.flatMap { $0.generation == generation ? $0 : nil }
        switch confirmation {
        case .unknown where (last?.count ?? 0) + 1 >= Self.mostUnknown,
            .postponed where (last?.count ?? 0) + 1 >= Self.mostUnknown, .over:
            entries[key]?.held = nil
            return dequeueWaiters(of: key, with: .askAgain) + dequeueSiblingWaiters(of: key)
        case .stillGood:
            entries[key]?.unconfirmed = nil
            return dequeueWaiters(of: key, withConfirmed: held) + dequeueSiblingWaiters(of: key)
        case .postponed, .unknown:
            let end = now.addingReportingOverflow(limits.confirmationPause)
            entries[key]?.unconfirmed = (
                generation, end.overflow ? .max : end.partialValue, (last?.count ?? 0) + 1
            )
            return dequeueWaiters(of: key, with: .kept(held, confirmation: nil)) + dequeueSiblingWaiters(of: key)
        }
    }

    /// Ends the confirmation of a session that is a credential; if refused, the driver closes its latch first.
    private mutating func confirm(
        _ key: SessionKey, _ unverified: HeldSession, _ confirmation: SessionConfirmation, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        entries[key]?.unverified = nil
        switch confirmation {
        case .over:
            return dequeueWaiters(of: key, with: .askAgain) + dequeueSiblingWaiters(of: key)
        case .stillGood:
            unverified.acceptance.isShown()
            entries[key]?.held = unverified
            entries[key]?.backOff = BackOff()
            return dequeueWaiters(of: key, withConfirmed: unverified) + dequeueSiblingWaiters(of: key)
        case .postponed(let until):
            let failure = LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server refused a credential that it has accepted before, and no other address showed if the credential "
                    + "is still accepted. It is sent again after a minute, and another refusal counts as a rejection. Set "
                    + "`prove-at` to an address that every accepted user may GET.", retryAt: until)
            return finish(key, with: .failure(failure), now: now, chance: 0)
        case .unknown:
            let failure = LoginFailure(
                .failed, challenge: key.challenge,
                detail:
                    "The server refused the credential at one address, and no other address showed if the credential is still "
                    + "accepted. Set `prove-at` to an address that every accepted user may GET.")
            return finish(key, with: .failure(failure), now: now, chance: 0)
        }
    }

    private mutating func dequeueWaiters(of key: SessionKey, withConfirmed session: HeldSession)
        -> [(waiter: Waiter, outcome: Outcome)]
    {
        dequeueWaiters(of: key, with: .kept(session, confirmation: entries[key]?.confirmation))
    }

    /// Returns true if a session of `key` is held, or hidden during its confirmation.
    package func hasSession(for key: SessionKey) -> Bool {
        guard let entry = entries[key] else { return false }
        return entry.held != nil || entry.isLoggingIn && entry.unverified != nil
    }

    /// Drops the session in doubt after its rejection, and returns the waiters to notify.
    public mutating func reject(
        _ key: SessionKey, generation: UInt64, _ failure: LoginFailure, now: Int64
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        if entries[key]?.unverified?.generation == generation { entries[key]?.unverified = nil }
        return finish(key, with: .failure(failure), now: now, chance: 0)
    }
}
