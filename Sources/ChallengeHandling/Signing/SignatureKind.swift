// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import SettingsReading

/// A kind of signature of requests: its keys under `sign`, and the login that makes its signer.
///
/// A kind is one folder and one entry of `SignatureKinds.all`.
package protocol SignatureKind: Sendable, Equatable {
    /// Keys of `sign` that belong to the kind. The first one names the kind.
    static var keys: [any SchemaKey] { get }

    /// Reads the keys. Reports problems and returns nil if there are any.
    static func read(_ fields: Fields, _ context: ChallengeContext) -> Self?

    /// Fields that the credential may need, for messages about missing fields.
    var neededFields: Set<String> { get }
    /// Fields that every login needs, for `doctor`.
    var requiredFields: Set<String> { get }
    /// Configured addresses that secrets are sent to, and their keys.
    var loginAddresses: [(url: WebURL, key: String)] { get }
    /// Returns whether both would sign the same request in a way that excludes the other.
    func conflicts(with other: Self) -> Bool
    /// Adds the settings that change the meaning of a signature.
    func add(to terms: inout LoginTerms)
    /// Returns the authenticator that signs the requests of a challenge.
    func authenticator(of challenge: ChallengeSettings, _ key: SessionKey, at site: LoginSite) -> Authenticator
}

extension SignatureKind {
    /// Key of `sign` that names the kind.
    package static var key: String { keys.first?.name ?? "" }

    /// All needed fields.
    package var requiredFields: Set<String> { neededFields }

    /// Empty by default: the secret never leaves this machine.
    package var loginAddresses: [(url: WebURL, key: String)] { [] }

    /// Returns whether both are of one kind with equal settings.
    func isEqual(to other: any SignatureKind) -> Bool { (other as? Self) == self }

    /// Returns whether both are of one kind and exclude each other.
    func isInConflict(with other: any SignatureKind) -> Bool { (other as? Self).map(conflicts(with:)) ?? false }
}

/// List of all kinds of signatures.
package enum SignatureKinds {
    /// Kinds, in the order in which messages name them.
    package static let all: [any SignatureKind.Type] = [
        AWSSignature.self,
        HMACSignature.self,
        MessageSignature.self,
    ]
}

/// Login without a challenge whose session is a signer made of a credential.
struct SigningLogin: SessionLogin {
    /// Interval between lookups of the credential, in milliseconds. A changed value is used after this time at the latest.
    static let lookUpEvery: Int64 = 10_000

    let key: SessionKey
    let makeSigner: @Sendable (Credential) throws(LoginFailure) -> any RequestSigner

    /// Looks up the credential and returns a session that signs.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let credential = try await conversation.credential(named: key.credential, for: key.challenge)
        var session = Session(expiresAt: conversation.now() + Self.lookUpEvery)
        session.signer = try makeSigner(credential)
        return session
    }
}
