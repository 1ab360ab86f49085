// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import HTTPTypes

/// The form-based sample of MobileFirst 7.1: the login page of a Java EE container, by the names of 7.1.
public struct FormHandler: RealmChallengeHandler {
    /// The realm's name.
    public let realm = "SampleAppRealm"
    private let ask: @Sendable (_ again: Bool) async -> (user: String, password: String)?

    /// A handler that asks a person by `ask`, which returns `nil` where he gives up.
    public init(ask: @escaping @Sendable (_ again: Bool) async -> (user: String, password: String)?) { self.ask = ask }

    /// Its form is submitted to `j_security_check`; some servers redirect to it, and say what was wrong on another page.
    public func isCustomResponse(_ response: ExaminedResponse) -> Bool {
        response.text.contains("j_security_check") || response.text.contains("Invalid username or password")
            || response.fields[.location]?.contains("/login") == true
    }

    /// Asks again for as long as the password is wrong.
    public func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        guard let (user, password) = await ask(challenge.isRepeated) else { return .submitFailure("Nobody logged in.") }
        return .submitLoginForm(url: "j_security_check", parameters: ["j_username": user, "j_password": password])
    }
}
