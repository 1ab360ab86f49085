// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import HTTPTypes

/// Form-based sample of MobileFirst 7.1: the login page of a Java EE container, with the names of 7.1.
public struct FormHandler: RealmChallengeHandler {
    /// Name of the realm at the server.
    public let realm = "SampleAppRealm"
    private let ask: @Sendable (_ again: Bool) async -> (user: String, password: String)?

    /// Creates a handler that asks a person by `ask`, which returns `nil` if the person gives up.
    public init(ask: @escaping @Sendable (_ again: Bool) async -> (user: String, password: String)?) { self.ask = ask }

    /// Returns true for the login page, a redirect to that page, and the page that some servers show after a wrong password.
    public func isCustomResponse(_ response: ExaminedResponse) -> Bool {
        response.text.contains("j_security_check") || response.text.contains("Invalid username or password")
            || response.fields[.location]?.contains("/login") == true
    }

    /// Asks for name and password, and again if the password was wrong.
    public func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        guard let (user, password) = await ask(challenge.isRepeated) else { return .submitFailure("Nobody logged in.") }
        return .submitLoginForm(url: "j_security_check", parameters: ["j_username": user, "j_password": password])
    }
}
