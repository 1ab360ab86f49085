// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A login that needs nobody's answer: the fields are made of a credential and go along with every request
/// (`inject` of the configuration).
public struct InjectionLogin: SessionLogin {
    /// A field and what its value is made of.
    public typealias Field = InjectedTemplate

    /// How long the fields are used before the credential is looked up again, in milliseconds: a changed value is in
    /// use after at most this.
    public static let lookUpEvery: Int64 = 10_000

    private let challenge: String
    private let credential: String
    private let fields: [Field]

    /// Injects `fields`, made of the credential of that name, in the name of `challenge`.
    public init(challenge: String, credential: String, fields: [Field]) {
        self.challenge = challenge
        self.credential = credential
        self.fields = fields
    }

    /// Looks the credential up and renders the fields.
    public func win(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        let found = try await conversation.credential(named: credential, for: challenge)
        var injected: [InjectedField] = []
        for field in fields {
            do throws(TemplateError) {
                injected.append(InjectedField(name: field.name, value: try field.value.render(found)))
            } catch {
                throw error.loginFailure(challenge: challenge)
            }
        }
        return Session(fields: injected, expiresAt: conversation.now() + Self.lookUpEvery)
    }
}
