// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// IBM's sample "ISAM": submits WebSEAL's login form, which is the answer, with status 200, to any request without a session.
public struct WebSEALHandler: GatewayChallengeHandler {
    /// Name of the gateway in failures.
    public let gatewayName = "webseal"
    private let user: String
    private let password: String

    /// Creates a handler that logs in as `user`.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// Returns true for a login page of WebSEAL, by the address of its form.
    public func canHandleResponse(_ response: ExaminedResponse) -> Bool {
        response.text.contains("/pkmslogin.form")
    }

    /// Submits the form once: a rejected password would be rejected again.
    public func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        if challenge.isRepeated { return .cancel(reason: "WebSEAL does not take the password.") }
        return .submitLoginForm(
            url: "/pkmslogin.form",
            parameters: ["username": user, "password": password, "login-form-type": "pwd"])
    }
}
