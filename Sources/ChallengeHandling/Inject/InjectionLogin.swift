// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Login without a challenge: fields and other values made of a credential are added to every request (`inject` of the
/// configuration).
public struct InjectionLogin: SessionLogin {
    /// A field and the template of its value.
    public typealias Field = InjectedTemplate

    /// The interval between lookups of the credential, in milliseconds. A changed value is used after this time at the
    /// latest.
    public static let lookUpEvery: Int64 = 10_000

    private let challenge: String
    private let credential: String
    private let fields: [Field]
    private let templates: InjectionTemplates

    /// Creates a login that injects `fields`, made of the named credential, for `challenge`.
    public init(challenge: String, credential: String, fields: [Field]) {
        self.init(challenge: challenge, credential: credential, fields: fields, InjectionTemplates())
    }

    /// Creates a login that injects fields, and values into queries, paths and bodies.
    package init(challenge: String, credential: String, fields: [Field], _ templates: InjectionTemplates) {
        self.challenge = challenge
        self.credential = credential
        self.fields = fields
        self.templates = templates
    }

    /// Looks up the credential and renders the templates.
    public func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let found = try await conversation.credential(named: credential, for: challenge)
        do throws(TemplateError) {
            let injected = try await InjectedFields(fields, found)
            var session = Session(fields: injected.constant, expiresAt: conversation.now() + Self.lookUpEvery)
            session.signer = injected.signer
            session.injections = try await templates.render(found)
            // A coded page cannot be cleaned.
            if session.injections?.cleansPages == true {
                session.fields.append(InjectedField(name: .acceptEncoding, value: Secret("identity")))
            }
            return session
        } catch {
            throw error.loginFailure(challenge: challenge)
        }
    }
}
