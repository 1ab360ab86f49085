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

    /// Requests the address. Only the login page itself ends the session; an overloaded or failing server leaves the
    /// result unknown.
    func run(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        do throws(LoginFailure) {
            let inside = try await fetch(with: held, conversation)
            if inside.asksForLogin { return .over }
            let isInTrouble = InconclusiveStatus.contains(inside.status)
            if isVerifying { return isInTrouble ? .unknown : inside.status == 401 ? .over : .stillGood }
            // A public address says nothing about the session.
            guard try await fetch(with: nil, conversation).asksForLogin else { return .over }
            return isInTrouble ? .unknown : .stillGood
        } catch {
            return .unknown
        }
    }

    private func fetch(
        with session: Session?, _ conversation: Conversation
    ) async throws(LoginFailure) -> (asksForLogin: Bool, status: Int) {
        var client = GatewayClient(name: name, conversation: conversation, session: session, asksForLogin: isChallenge)
        let page = try await client.fetch(address, "confirmation", following: .untilLoginPage)
        return (page.asksForLogin, page.response.status)
    }
}
