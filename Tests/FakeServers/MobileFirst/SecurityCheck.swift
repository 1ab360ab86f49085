// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A security check as an adapter's developer writes it: how long its states last, what is a right answer, and what its
/// challenge says.
package struct SecurityCheck: Sendable {
    /// The name, which is also a scope element.
    package var name: String
    /// How long its states last, and how many answers it takes.
    package var properties: Properties
    /// What it says to an answer.
    package var validate: @Sendable (JSON) -> Verdict
    /// Its challenge, made from the attempts that remain and the message of the last wrong answer.
    package var challenge: @Sendable (_ remaining: Int64, _ message: String?) -> JSON
    /// What it says instead of a challenge: it fails at once, whatever comes.
    package var failure: JSON?

    /// The configuration of a check (`securityCheckDefinition` in `adapter.xml`); the defaults are the product's.
    package struct Properties: Sendable {
        /// Answers before blocking.
        package var maxAttempts: Int64 = 1
        /// Seconds from the first challenge until the counter starts anew.
        package var attemptingStateExpirationSec: Int64 = 120
        /// Seconds that success holds.
        package var successStateExpirationSec: Int64 = 3600
        /// Seconds that a block holds; 0 is no blocking.
        package var blockedStateExpirationSec: Int64 = 0
        /// Seconds from the login for which the user is remembered; 0 is not at all.
        package var rememberMeDurationSec: Int64 = 0

        /// The product's defaults.
        package init() {}

        /// The properties given, in seconds, and the product's defaults for the rest.
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

    /// What a check says to an answer.
    package enum Verdict: Sendable {
        /// Right, with what `successes` holds for it; remembered where the check remembers and the answer asks for it.
        case right(JSON, remembered: Bool = false)
        /// Wrong, with the message of the next challenge.
        case wrong(String?)
    }

    /// A check whose challenge is as IBM's samples have it: `errorMsg` and `remainingAttempts`.
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

    /// The same check with a challenge that is always that value: `{}`, `null` or anything.
    package func challenging(with value: JSON) -> SecurityCheck {
        var check = self
        check.challenge = { _, _ in value }
        return check
    }
}

extension SecurityCheck {
    /// The sample check PinCodeAttempts: answer `{"pin": …}`, three attempts, success and block 60 s.
    package static func pinCodeAttempts(
        pin: String = "1234", _ properties: Properties = Properties(maxAttempts: 3, success: 60, blocked: 60),
        name: String = "PinCodeAttempts"
    ) -> SecurityCheck {
        SecurityCheck(name, properties) { answer in
            guard let given = answer["pin"] else { return .wrong("Pin code was not provided") }
            return given == .string(pin) ? .right(.empty) : .wrong("Pin code is not valid. Hint: \(pin)")
        }
    }

    /// The sample check UserLogin: answer `{"username", "password", "rememberMe"?}`, right when both are equal.
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

    /// A check that never asks and fails at once with that object.
    package static func failing(_ name: String, with failure: JSON) -> SecurityCheck {
        var check = SecurityCheck(name) { _ in .wrong(nil) }
        check.failure = failure
        return check
    }
}
