// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import CountersignDaemon
import Secrets

/// Handler of a gateway that no configuration can describe. The credential comes from the daemon's sources.
struct Portal: GatewayChallengeHandler {
    let gatewayName = "portal"

    func canHandleResponse(_ response: ExaminedResponse) -> Bool { response.text.contains("/pkmslogin.form") }

    func handleChallenge(_ challenge: GatewayChallenge) async throws -> GatewayAnswer {
        if challenge.isRepeated { return .cancel(reason: "The portal does not take the password.") }
        guard let credential = try await challenge.conversation.credentials.credential(named: "portal"),
            let user = credential["username"], let password = credential["password"]
        else { return .cancel(reason: "No source knows the credential \"portal\".") }
        return .submitForm(
            LoginForm(
                url: "/pkmslogin.form",
                parameters: [("username", user), ("password", password), ("login-form-type", Secret("pwd"))]))
    }
}

Countersign.main(handlers: ["corporate-portal": .gateway(Portal())])
