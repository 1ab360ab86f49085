// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The state of one security check for one client.
///
/// Expired, attempting, blocked, success: the states and passages of the product's base classes
/// `ExternalizableSecurityCheck`, `CredentialsValidationSecurityCheck` and `UserAuthenticationSecurityCheck`.
package struct SecurityCheckState: Sendable {
    private var phase = Phase.expired
    private var remembered: Remembered?

    /// What a check says to one request.
    package enum Outcome: Sendable, Equatable {
        /// It demands an answer; with the attempts that remain.
        case challenge(JSON, remaining: Int64)
        /// It is blocked, or fails for good.
        case failure(JSON)
        /// It is satisfied.
        case success(JSON)
    }

    /// Nothing has happened yet.
    package init() {}

    /// Puts a request before the check: with or without an answer, at that time in milliseconds.
    ///
    /// `used` is the number of attempts that count as used when attempting begins: 0, unless a test wants to start later.
    package mutating func handle(
        _ answer: JSON?, for check: SecurityCheck, used: Int64 = 0, now: Int64
    ) -> Outcome {
        if let failure = check.failure { return .failure(failure) }
        lapse(check.properties, now: now)
        switch phase {
        case .blocked:
            // The credentials are not looked at.
            return .failure(["failure": "Account blocked"])
        case .success(_, let details) where answer == nil:
            return .success(details)
        case .expired where answer == nil:
            if let remembered {
                phase = .success(since: now, remembered.details)
                return .success(remembered.details)
            }
            phase = .attempting(since: now, used: used, message: nil)
        case .attempting, .expired, .success:
            break
        }
        guard let answer else { return challenge(check) }
        switch check.validate(answer) {
        case .right(let details, let wantsMemory):
            phase = .success(since: now, details)
            remembered =
                wantsMemory && check.properties.rememberMeDurationSec > 0
                ? Remembered(since: now, details: details) : nil
            return .success(details)
        case .wrong(let message):
            return reject(check, message, used: used, now: now)
        }
    }

    /// Whether the check is satisfied at that time in milliseconds; looks only.
    package func isSuccess(for check: SecurityCheck, now: Int64) -> Bool {
        secondsLeft(for: check, now: now) != nil
    }

    /// Whether the check is blocked at that time in milliseconds; looks only.
    package func isBlocked(for check: SecurityCheck, now: Int64) -> Bool {
        var state = self
        state.lapse(check.properties, now: now)
        if case .blocked = state.phase { return true }
        return false
    }

    /// The seconds that success still holds at that time in milliseconds; `nil` without success.
    package func secondsLeft(for check: SecurityCheck, now: Int64) -> Int64? {
        var state = self
        state.lapse(check.properties, now: now)
        guard case .success(let since, _) = state.phase else { return nil }
        return check.properties.successStateExpirationSec - (now - since) / 1000
    }

    /// Logs out: expired, and the remembered user forgotten.
    package mutating func logout() {
        self = SecurityCheckState()
    }

    private mutating func reject(_ check: SecurityCheck, _ message: String?, used: Int64, now: Int64) -> Outcome {
        let properties = check.properties
        let before: (since: Int64, used: Int64) =
            if case .attempting(let since, let used, _) = phase { (since, used) } else { (now, used) }
        if before.used + 1 < properties.maxAttempts {
            phase = .attempting(since: before.since, used: before.used + 1, message: message)
            return challenge(check)
        }
        guard properties.blockedStateExpirationSec > 0 else {
            // A block of no length is over at once: a fresh challenge with the full count.
            phase = .attempting(since: now, used: 0, message: message)
            return challenge(check)
        }
        phase = .blocked(since: now)
        return .failure(["failure": "Account blocked"])
    }

    private func challenge(_ check: SecurityCheck) -> Outcome {
        guard case .attempting(_, let used, let message) = phase else { return .failure(.empty) }
        let remaining = max(check.properties.maxAttempts - used, 0)
        return .challenge(check.challenge(remaining, message), remaining: remaining)
    }

    private mutating func lapse(_ properties: SecurityCheck.Properties, now: Int64) {
        let (since, life): (Int64, Int64) =
            switch phase {
            case .expired: (now, .max)
            case .attempting(let since, _, _): (since, properties.attemptingStateExpirationSec)
            case .blocked(let since): (since, properties.blockedStateExpirationSec)
            case .success(let since, _): (since, properties.successStateExpirationSec)
            }
        if (now - since) / 1000 >= life { phase = .expired }
        if let remembered, (now - remembered.since) / 1000 >= properties.rememberMeDurationSec { self.remembered = nil }
    }

    private enum Phase {
        case attempting(since: Int64, used: Int64, message: String?)
        case blocked(since: Int64)
        case expired
        case success(since: Int64, JSON)
    }

    private struct Remembered {
        var since: Int64
        var details: JSON
    }
}
