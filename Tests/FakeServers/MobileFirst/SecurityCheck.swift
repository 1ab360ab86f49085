// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A security check as an adapter's developer writes it: the lifetime of its states, the right answer, and its
/// challenge.
package struct SecurityCheck: Sendable {
    /// The name, which is also a scope element.
    package var name: String
    /// The lifetimes of its states, and the number of answers that it takes.
    package var properties: Properties
    /// Returns the verdict on an answer.
    package var validate: @Sendable (JSON) -> Verdict
    /// Its challenge, made from the attempts that remain and the message of the last wrong answer.
    package var challenge: @Sendable (_ remaining: Int64, _ message: String?) -> JSON
    /// A failure in place of a challenge: the check fails at once, whatever the answer.
    package var failure: JSON?

    /// The configuration of a check (`securityCheckDefinition` in `adapter.xml`); the defaults are the product's.
    package struct Properties: Sendable {
        /// Answers before blocking.
        package var maxAttempts: Int64 = 1
        /// Seconds from the first challenge until the counter is reset.
        package var attemptingStateExpirationSec: Int64 = 120
        /// Seconds that success holds.
        package var successStateExpirationSec: Int64 = 3600
        /// Seconds for which a block lasts; 0: no blocking.
        package var blockedStateExpirationSec: Int64 = 0
        /// Seconds from the login for which the user is remembered; 0 is not at all.
        package var rememberMeDurationSec: Int64 = 0

        /// Creates properties with the product's defaults.
        package init() {}

        /// Creates properties, in seconds, with the product's defaults for the rest.
        package init(
            maxAttempts: Int64, attempting: Int64 = 120, success: Int64 = 3600, blocked: Int64 = 0,
            rememberMe: Int64 = 0
        ) {
            self.maxAttempts = maxAttempts
            self.attemptingStateExpirationSec = attempting
            self.successStateExpirationSec = success
            self.blockedStateExpirationSec = blocked
            self.rememberMeDurationSec = rememberMe
        }
    }

    /// The verdict on an answer.
    package enum Verdict: Sendable {
        /// Right, with the check's part of `successes`; remembered if the check remembers users and the answer asks for
        /// it.
        case right(JSON, remembered: Bool = false)
        /// Wrong, with the message of the next challenge.
        case wrong(String?)
    }

    /// Creates a check whose challenge is that of IBM's samples: `errorMsg` and `remainingAttempts`.
    package init(
        _ name: String, _ properties: Properties = Properties(), validate: @escaping @Sendable (JSON) -> Verdict
    ) {
        self.name = name
        self.properties = properties
        self.validate = validate
        self.challenge = { remaining, message in
            ["errorMsg": message.map(JSON.string) ?? .null, "remainingAttempts": .integer(remaining)]
        }
    }

    /// Returns this check with a challenge that is always `value`: `{}`, `null` or anything.
    package func challenging(with value: JSON) -> SecurityCheck {
        var check = self
        check.challenge = { _, _ in value }
        return check
    }
}

extension SecurityCheck {
    /// Returns the sample check PinCodeAttempts: answer `{"pin": …}`, three attempts, success and block 60 s.
    package static func pinCodeAttempts(
        pin: String = "1234", _ properties: Properties = Properties(maxAttempts: 3, success: 60, blocked: 60),
        name: String = "PinCodeAttempts"
    ) -> SecurityCheck {
        SecurityCheck(name, properties) { answer in
            guard let given = answer["pin"] else { return .wrong("Pin code was not provided") }
            return given == .string(pin) ? .right(.empty) : .wrong("Pin code is not valid. Hint: \(pin)")
        }
    }

    /// Returns the sample check UserLogin: answer `{"username", "password", "rememberMe"?}`, right when both are equal.
    package static func userLogin(
        _ properties: Properties = Properties(maxAttempts: 3, success: 600, blocked: 60), name: String = "UserLogin"
    ) -> SecurityCheck {
        SecurityCheck(name, properties) { answer in
            guard let user = answer["username"]?.string, let password = answer["password"]?.string else {
                return .wrong("Credentials not set properly")
            }
            guard !user.isEmpty, user == password else { return .wrong("Wrong Credentials") }
            let details: JSON = [
                "id": .string(user), "displayName": .string(user), "authenticatedBy": .string(name), "attributes": [:],
            ]
            return .right(["user": details], remembered: answer["rememberMe"] == true)
        }
    }

    /// Returns a check that never asks and fails at once with that object.
    package static func failing(_ name: String, with failure: JSON) -> SecurityCheck {
        var check = SecurityCheck(name) { _ in .wrong(nil) }
        check.failure = failure
        return check
    }
}

/// The state of one security check for one client.
///
/// Expired, attempting, blocked, success: the states and passages of the product's base classes
/// `ExternalizableSecurityCheck`, `CredentialsValidationSecurityCheck` and `UserAuthenticationSecurityCheck`.
package struct SecurityCheckState: Sendable {
    private var phase = Phase.expired
    private var remembered: Remembered?

    /// The outcome of one request.
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
            // The credentials are not examined.
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

    /// Returns true if the check is satisfied at `now`, in milliseconds; changes nothing.
    package func isSuccess(for check: SecurityCheck, now: Int64) -> Bool {
        secondsLeft(for: check, now: now) != nil
    }

    /// Returns true if the check is blocked at `now`, in milliseconds; changes nothing.
    package func isBlocked(for check: SecurityCheck, now: Int64) -> Bool {
        var state = self
        state.lapse(check.properties, now: now)
        if case .blocked = state.phase { return true }
        return false
    }

    /// Returns the remaining seconds of success at `now`, in milliseconds; `nil` without success.
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
