// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Login without a challenge whose session is a signer made of a credential.
struct SigningLogin: SessionLogin {
    /// Interval between lookups of the credential, in milliseconds. A changed value is used after this time at the latest.
    static let lookUpEvery: Int64 = 10_000

    /// Key of the session.
    let key: SessionKey
    /// Returns the signer for a credential.
    let makeSigner: @Sendable (Credential) throws(LoginFailure) -> any RequestSigner

    /// Looks up the credential and returns a session that signs.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let credential = try await conversation.credential(named: key.credential, for: key.challenge)
        var session = Session(expiresAt: conversation.now() + Self.lookUpEvery)
        session.signer = try makeSigner(credential)
        return session
    }
}
