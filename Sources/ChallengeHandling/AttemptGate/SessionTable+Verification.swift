// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// Unverified sessions (Basic, Digest): one exchange tries each of them, while the others wait; a rejected credential is
// not sent twice (CONTRIBUTING, rules 1 and 3).
extension SessionTable {
    /// Result of an exchange that tried a session.
    public enum VerificationResult: Sendable, Equatable {
        /// The server accepted the session.
        case accepted
        /// The session has expired, which says nothing about the credential.
        case outdated
        /// Nothing was sent, or the response says nothing about the credential: another exchange may try at once.
        case undecided
        /// Unknown: the request was sent, and no usable response came; all wait for a pause.
        case unanswered(UnansweredTrial)
    }

    func isUnverified(_ key: SessionKey, generation: UInt64) -> Bool {
        entries[key]?.unverified?.generation == generation
    }

    /// Returns true if the session of that generation was dropped or replaced; false also while it is hidden.
    package func isOutdated(_ key: SessionKey, generation: UInt64) -> Bool {
        entries[key]?.held?.generation != generation && !isUnverified(key, generation: generation)
    }

    /// Records the result of an exchange that tried a session, and returns the waiters to notify.
    ///
    /// `chance` is a random number in 0..<1.
    public mutating func recordVerification(
        of key: SessionKey, generation: UInt64, _ result: VerificationResult, by waiter: Waiter, now: Int64,
        chance: Double
    ) -> [(waiter: Waiter, outcome: Outcome)] {
        guard var entry = entries[key], entry.verifier == waiter else { return [] }
        version &+= 1
        entry.verifier = nil
        entries[key] = entry
        guard let unverified = entry.unverified, unverified.generation == generation else {
            return resumeVerification(of: key)
        }
        switch result {
        case .accepted: break
        case .outdated:
            entries[key]?.unverified = nil
            return dequeueWaiters(of: key, with: .askAgain)
        case .undecided: return assignVerifier(of: key)
        case .unanswered(let trial):
            let failure = trial.failure(of: key.challenge)
            entry.unverified = nil
            entry.backOff.record(failure, limits, now: now, chance: chance, doubles: trial.doublesPause)
            entries[key] = entry
            return dequeueWaiters(of: key, with: .failed(failure))
        }
        entries[key]?.unverified = nil
        entries[key]?.held = unverified
        entries[key]?.backOff = BackOff()
        return dequeueWaiters(of: key, with: .established(unverified))
    }

    /// Assigns the session to the next waiter; without an unverified session, all waiters ask again.
    private mutating func resumeVerification(of key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        guard let entry = entries[key], entry.unverified == nil, !entry.isLoggingIn else {
            return assignVerifier(of: key)
        }
        return dequeueWaiters(of: key, with: .askAgain)
    }

    /// Assigns the unverified session to the next waiter, if there is one.
    mutating func assignVerifier(of key: SessionKey) -> [(waiter: Waiter, outcome: Outcome)] {
        guard var entry = entries[key], let unverified = entry.unverified, entry.verifier == nil, !entry.isLoggingIn
        else {
            return []
        }
        guard !entry.waiters.isEmpty else { return [] }
        let next = entry.waiters.removeFirst()
        waiterCount -= 1
        entry.verifier = next
        entries[key] = entry
        return [(next, .verify(key, unverified))]
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
        guard waiterCount < limits.waiters || isUnverified && entry.verifier == waiter else { return .overloaded }
        waiterCount += 1
        entry.waiters.append(waiter)
        if isUnverified, entry.verifier == waiter { entry.verifier = nil }
        let leads = !entry.isLoggingIn && entry.verifier == nil && !isLoggingIn(siblingOf: key)
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
        case .unknown where (last?.count ?? 0) + 1 >= Self.mostUnknown, .over:
            entries[key]?.held = nil
            return dequeueWaiters(of: key, with: .askAgain) + dequeueSiblingWaiters(of: key)
        case .stillGood:
            entries[key]?.unconfirmed = nil
            return dequeueWaiters(of: key, withConfirmed: held) + dequeueSiblingWaiters(of: key)
        case .unknown:
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
            entries[key]?.held = unverified
            entries[key]?.backOff = BackOff()
            return dequeueWaiters(of: key, withConfirmed: unverified) + dequeueSiblingWaiters(of: key)
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

/// Reason why a request that tried a session showed nothing about its credential.
///
/// The server may have counted the request as an attempt, so the next one waits (CONTRIBUTING, rule 3: unknown).
public enum UnansweredTrial: Sendable, Equatable {
    /// The caller left before the answer.
    case abandoned
    /// The connection was lost, or the answer is unusable.
    case lost
    /// The server was unable to check the credential: 429 or 5xx. `retryAt`: its `Retry-After` in ms since 1970.
    case status(Int, retryAt: Int64? = nil)
    /// No answer came in time.
    case timedOut

    /// Returns the failure for all who ask for the session during the pause.
    func failure(of challenge: String) -> LoginFailure {
        let counted = "and the server may have counted it as an attempt"
        switch self {
        case .abandoned:
            return LoginFailure(
                .failed, challenge: challenge,
                detail: "The caller of the request that tried the credential left before the answer, \(counted). "
                    + "A later request tries again.")
        case .lost:
            return LoginFailure(
                .failed, challenge: challenge,
                detail: "The request that tried the credential got no usable answer, \(counted). "
                    + "A later request tries again; check the server.")
        case .status(let status, let retryAt):
            return LoginFailure(
                .failed, challenge: challenge,
                detail:
                    "The server answered the request that tried the credential with \(status), which does not show if "
                    + "it accepts the credential. A later request tries again; check the server.", retryAt: retryAt)
        case .timedOut:
            return LoginFailure(
                .timedOut, challenge: challenge,
                detail: "The request that tried the credential got no answer in time, \(counted). "
                    + "A later request tries again; check the server.")
        }
    }

    /// True if each further one in a row doubles the pause. Callers who leave early must not lengthen it for others.
    var doublesPause: Bool { self != .abandoned }
}
