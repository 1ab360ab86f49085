// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
public import Secrets

/// One scheme of HTTP authentication (RFC 9110 §11.1) in a challenge's list.
public protocol AuthenticationScheme: Sendable {
    /// The name in lower case.
    var name: String { get }
    /// True if the answer depends on no challenge and can be sent first (Basic).
    var needsNoChallenge: Bool { get }
    /// True if servers may apply the answer to the whole connection.
    var bindsConnections: Bool { get }
    /// Returns the demand of `challenges` on a request that carried an answer of this scheme. A request without an
    /// answer is asked for one. Only challenges of `realm` count, if given. `nil` if the scheme is not offered in a
    /// form that can be answered.
    func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge?
    /// Returns the demand of a 403 on a request that carried an answer of this scheme. `pass` if the scheme has no
    /// scopes.
    func refusal(in response: ExaminedResponse, realm: String?) -> Challenge
    /// Returns a session that answers the offer, or a reason to try the next scheme. Such a reason is a missing ticket,
    /// for example. Throws if no weaker scheme may be tried.
    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer
    /// Restores the signer of `image`, for a session of the named challenge. `nil` if the image belongs to another
    /// scheme.
    func signer(of image: SignerImage, for credential: Credential, challenge: String) -> (any RequestSigner)?
}

extension AuthenticationScheme {
    /// False: most answers depend on a challenge.
    public var needsNoChallenge: Bool { false }

    /// False: most answers apply to one request.
    public var bindsConnections: Bool { false }

    /// Passes: most schemes have no scopes.
    public func refusal(in response: ExaminedResponse, realm: String?) -> Challenge { .pass }

    /// Returns `nil`: most schemes have no signers that another process could restore.
    public func signer(of image: SignerImage, for credential: Credential, challenge: String) -> (any RequestSigner)? {
        nil
    }
}

/// Result of a scheme.
public enum SchemeAnswer: Sendable {
    /// A session.
    case session(Session)
    /// The reason why the scheme does not work here. It has no full stop and no secrets.
    case useless(String)
}

/// Input of a scheme for a session.
public struct SchemeOccasion: Sendable {
    /// The challenge's name in the configuration.
    public var name: String
    /// The challenges of the response.
    public var challenges: [AuthenticationChallenge]
    /// The parts of the response's challenges that could not be read, in words; `nil` if there are none.
    var unreadText: String?
    /// Schemes with a challenge that was not read whole.
    var damaged: Set<String> = []
    /// The response with the challenges; `nil` before any.
    public var response: ExaminedResponse?
    /// The scope to request, for schemes with scopes.
    public var scope: Scope
    /// The configured realm; `nil` for any.
    public var realm: String?
    /// The requested address.
    public var url: WebURL
    /// The credential, whose latch is open; `nil` if not configured.
    public var use: CredentialUse?
    /// The conversation's ports.
    public var conversation: Conversation

    /// Creates an occasion.
    public init(
        name: String, challenges: [AuthenticationChallenge] = [], response: ExaminedResponse? = nil,
        scope: Scope = .empty, realm: String? = nil, url: WebURL, use: CredentialUse?, conversation: Conversation
    ) {
        self.name = name
        self.response = response
        self.scope = scope
        self.challenges = challenges
        self.realm = realm
        self.url = url
        self.use = use
        self.conversation = conversation
    }

    /// Returns the credential. Throws `no-credential` if it is not configured.
    func requireUse() throws(LoginFailure) -> CredentialUse {
        guard let use else {
            throw LoginFailure(
                .noCredential, challenge: name,
                detail: "The challenge \"\(name)\" names no `credential`, which this scheme needs. Add it.")
        }
        return use
    }

    /// Takes the challenges of a response, and reports what could not be read.
    mutating func readChallenges(in fields: HTTPFields) {
        let list = ChallengeList(in: fields)
        challenges = list.challenges
        unreadText = list.unreadText
        damaged = list.damaged
        if let unreadText { report("WWW-Authenticate: not understood: \(unreadText)") }
    }

    /// Reports a step, for `login` and the log.
    func report(_ text: String, _ kind: ConversationStep.Kind = .exchange) {
        conversation.report(ConversationStep(challenge: name, text: text, kind: kind))
    }
}

/// A scheme that `scheme` may name. Each has its folder and a line in `allCases`.
package struct SchemeKind: Sendable {
    /// The name in the configuration.
    package let rawValue: String
    /// False if GSS-API's own ticket cache or keytab is enough.
    var needsCredential = true
    /// True if the scheme authenticates a connection, which no other program can use.
    var authenticatesConnections = false
    /// Makes the scheme at a site. `token` is the authenticator of the settings' `token`. `nil` if the scheme needs one
    /// that is not configured.
    let make: @Sendable (SchemeSettings, LoginSite, _ token: Authenticator?) -> (any AuthenticationScheme)?
}

extension SchemeKind: CaseIterable {
    /// All schemes.
    package static let allCases: [SchemeKind] = [.basic, .bearer, .digest, .negotiate, .ntlm]
}

extension SchemeKind: RawRepresentable, Hashable {
    /// Creates the scheme of that name.
    package init?(rawValue: String) {
        guard let kind = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
        self = kind
    }
}

/// The fields `username` and `password` of a credential, checked for HTTP authentication.
///
/// They are sent as the stored UTF-8, without normalization.
public struct NameAndPassword: Sendable {
    /// The user name.
    public let username: Secret
    /// The password, which may be empty.
    public let password: Secret

    /// Reads both from `credential`. Throws `no-credential` if one is missing, is not UTF-8, or has a control
    /// character, which neither Basic nor Digest can carry (RFC 7617 §2).
    public init(_ credential: Credential, challenge: String) throws(LoginFailure) {
        username = try Self.field("username", of: credential, challenge)
        password = try Self.field("password", of: credential, challenge)
    }

    private static func field(
        _ name: String, of credential: Credential, _ challenge: String
    ) throws(LoginFailure) -> Secret {
        guard let value = credential[name] else {
            throw TemplateError.fieldMissing(field: name, credential: credential.name).loginFailure(
                challenge: challenge)
        }
        guard String(validating: value.revealBytes(), as: UTF8.self) != nil else {
            throw TemplateError.fieldNotText(field: name, credential: credential.name).loginFailure(
                challenge: challenge)
        }
        let isClean = value.withBytes { bytes in
            for index in bytes.indices where bytes[index] < 0x20 || bytes[index] == 0x7F { return false }
            return true
        }
        guard isClean else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail:
                    "The field \"\(name)\" of the credential \"\(credential.name)\" holds a control character, perhaps "
                    + "a line break, which HTTP authentication cannot carry. Store the field without it.")
        }
        return value
    }
}
