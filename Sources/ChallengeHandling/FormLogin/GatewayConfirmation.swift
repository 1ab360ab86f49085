// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Check if a session at a gateway is still valid.
struct GatewayConfirmation {
    /// The address to request.
    let address: WebURL
    /// True if the address is configured to be open only with a session.
    let isVerifying: Bool
    /// The challenge's name.
    let name: String
    /// True if a response asks for a login.
    let isChallenge: (ExaminedResponse) -> Bool

    /// Requests the address. Only the login page itself ends the session, as the address shows it without a session: somebody may
    /// have put another form there. An overloaded or failing server leaves the result unknown.
    func run(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        do throws(LoginFailure) {
            let inside = try await fetch(with: held, conversation)
            let isInTrouble = InconclusiveStatus.contains(inside.response.status)
            if isVerifying, !inside.asksForLogin {
                return isInTrouble ? .unknown : inside.response.status == 401 ? .over : .stillGood
            }
            if inside.isAskedByRedirect { return .over }
            // A public address says nothing about the session.
            let outside = try await fetch(with: nil, conversation)
            guard outside.asksForLogin else { return .over }
            if inside.asksForLogin {
                return LoginPage(address: address, source: .configured, page: outside).looksLike(inside)
                    ? .over : .stillGood
            }
            return isInTrouble ? .unknown : .stillGood
        } catch {
            return .unknown
        }
    }

    private func fetch(
        with session: Session?, _ conversation: Conversation
    ) async throws(LoginFailure) -> GatewayClient.Page {
        var client = GatewayClient(name: name, conversation: conversation, session: session, asksForLogin: isChallenge)
        return try await client.fetch(address, "confirmation", following: .untilLoginPage)
    }
}
