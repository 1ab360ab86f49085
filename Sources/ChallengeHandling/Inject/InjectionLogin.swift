// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Login without a challenge: fields made of a credential are added to every request (`inject` of the configuration).
public struct InjectionLogin: SessionLogin {
    /// A field and the template of its value.
    public typealias Field = InjectedTemplate

    /// The interval between lookups of the credential, in milliseconds. A changed value is used after this time at the
    /// latest.
    public static let lookUpEvery: Int64 = 10_000

    private let challenge: String
    private let credential: String
    private let fields: [Field]

    /// Creates a login that injects `fields`, made of the named credential, for `challenge`.
    public init(challenge: String, credential: String, fields: [Field]) {
        self.challenge = challenge
        self.credential = credential
        self.fields = fields
    }

    /// Looks up the credential and renders the fields.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let found = try await conversation.credential(named: credential, for: challenge)
        do throws(TemplateError) {
            let injected = try await InjectedFields(fields, found)
            var session = Session(fields: injected.constant, expiresAt: conversation.now() + Self.lookUpEvery)
            session.signer = injected.signer
            return session
        } catch {
            throw error.loginFailure(challenge: challenge)
        }
    }
}
