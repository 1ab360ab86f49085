// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The question if a session at a gateway still works.
struct GatewayConfirmation {
    /// The address that is asked for.
    let address: WebURL
    /// True if the configuration says that only a session opens the address.
    let isProving: Bool
    /// The challenge's name.
    let name: String
    /// True if a response tells that nobody is logged in.
    let isChallenge: (ExaminedResponse) -> Bool

    /// Asks. Only the login page itself is the end of the session; trouble of the server is unknown.
    func run(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        do throws(LoginFailure) {
            let inside = try await look(with: held, conversation)
            if inside.isMarked { return .over }
            let isInTrouble = inside.status >= 500 || inside.status == 408 || inside.status == 429
            if isProving { return isInTrouble ? .unknown : inside.status == 401 ? .over : .stillGood }
            // An address that anybody may see says nothing about the session.
            guard try await look(with: nil, conversation).isMarked else { return .over }
            return isInTrouble ? .unknown : .stillGood
        } catch {
            return .unknown
        }
    }

    private func look(
        with session: Session?, _ conversation: Conversation
    ) async throws(LoginFailure) -> (isMarked: Bool, status: Int) {
        var visit = GatewayVisit(name: name, conversation: conversation, session: session, isMarked: isChallenge)
        let page = try await visit.look(at: address, "confirmation", over: .untilMarked)
        return (page.isMarked, page.response.status)
    }
}
