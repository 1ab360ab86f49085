// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import Secrets

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

/// Fields of a session, rendered from the templates of `inject` when the session begins.
package struct InjectedFields {
    /// Fields that are the same in all requests.
    package private(set) var constant: [InjectedField] = []
    /// Signer of the fields that differ between requests; nil if there are none.
    package private(set) var signer: (any RequestSigner)?

    /// True if there is no field.
    var isEmpty: Bool { constant.isEmpty && signer == nil }

    /// Renders `templates` with the fields of `credential`, and with values that the server has sent.
    ///
    /// Values of cookies are not rendered yet: they come from the cookies of each request.
    package init(
        _ templates: [InjectedTemplate], _ credential: Credential, received: (ValueSource) -> Secret? = { _ in nil }
    ) async throws(TemplateError) {
        var varying: [InjectedFieldSigner.Field] = []
        for template in templates {
            let hasCookie = template.value.sources.contains(where: \.isCookie)
            guard hasCookie || !template.methods.isEmpty else {
                constant.append(
                    InjectedField(
                        name: template.name, value: try await template.value.render(credential, received: received)))
                continue
            }
            var parts: [InjectedFieldSigner.Part] = []
            for part in template.value.parts {
                switch part {
                case .received(.cookie(let name)): parts.append(.cookie(name, isDecoded: false))
                case .received(.decodedCookie(let name)): parts.append(.cookie(name, isDecoded: true))
                default: parts.append(.constant(try await TextTemplate.value(of: part, credential, received)))
                }
            }
            varying.append(.init(name: template.name, methods: template.methods, parts: parts))
        }
        if !varying.isEmpty { signer = InjectedFieldSigner(varying) }
    }
}
