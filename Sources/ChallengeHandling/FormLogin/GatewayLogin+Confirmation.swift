// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

// A login page in answer to a request with a session that worked may be about that page alone: some always hold the form, some users
// may not see all pages.
extension GatewayLogin {
    /// Asks for `prove-at` with the session, or for the upstream's address with and without it.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation {
        await GatewayConfirmation(
            address: proof ?? base, isProving: proof != nil, name: key.challenge, isChallenge: isMarked
        ).run(held, conversation)
    }
}
