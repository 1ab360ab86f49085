// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling

/// IBM's sample "ISAM": submits WebSEAL's login form, which comes with status 200 in place of whatever was asked for.
public struct WebSEALHandler: GatewayChallengeHandler {
    /// A name for failures.
    public let gatewayName = "webseal"
    private let user: String
    private let password: String

    /// A handler for that user.
    public init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// The form's address is in every login page of WebSEAL.
    public func canHandleResponse(_ response: ExaminedResponse) -> Bool {
        response.text.contains("/pkmslogin.form")
    }

    /// One try: the same again would only be wrong again.
    public func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        if challenge.isRepeated { return .cancel(reason: "WebSEAL does not take the password.") }
        return .submitLoginForm(
            url: "/pkmslogin.form",
            parameters: ["username": user, "password": password, "login-form-type": "pwd"])
    }
}
