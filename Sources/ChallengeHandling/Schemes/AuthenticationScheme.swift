// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One scheme of HTTP authentication (RFC 9110 §11.1), as a login's list names it.
public protocol AuthenticationScheme: Sendable {
    /// Its name, in lower case.
    var name: String { get }
    /// Whether its answer needs nothing of a challenge, so that it can go ahead of any (Basic).
    var needsNoChallenge: Bool { get }
    /// True if servers may take its answer for the word of the whole connection.
    var bindsConnections: Bool { get }
    /// What `challenges`, those of `realm` only where one is given, ask of a request that carried an answer of this scheme: of one
    /// without, they ask for that. `nil` where it is not offered, or not in a way that we can answer.
    func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge?
    /// What a 403 asks of a request that carried an answer of this scheme; `pass` if the scheme knows no scopes.
    func refusal(in response: ExaminedResponse, realm: String?) -> Challenge
    /// The session that answers what `offer` was found among, or why there is none here (no ticket), so that the next of the
    /// list is tried; throws where none weaker may be.
    func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer
    /// The signer that `image` was taken of, for a session of the challenge of that name; `nil` if it was not this scheme's.
    func signer(of image: SignerImage, for credential: Credential, challenge: String) -> (any RequestSigner)?
}

extension AuthenticationScheme {
    /// Most answers are made of a challenge.
    public var needsNoChallenge: Bool { false }

    /// Most speak for one request.
    public var bindsConnections: Bool { false }

    /// Most know no scopes.
    public func refusal(in response: ExaminedResponse, realm: String?) -> Challenge { .pass }

    /// Most have signers that end with their process, or none.
    public func signer(of image: SignerImage, for credential: Credential, challenge: String) -> (any RequestSigner)? {
        nil
    }
}

/// What a scheme makes of an occasion.
public enum SchemeAnswer: Sendable {
    /// A session.
    case session(Session)
    /// None: it does not work here. In words, without a full stop and without secrets.
    case useless(String)
}

/// What a scheme makes a session of.
public struct SchemeOccasion: Sendable {
    /// The challenge's name in the configuration.
    public var name: String
    /// The challenges of the response.
    public var challenges: [AuthenticationChallenge]
    /// The response that they came with; `nil` ahead of any.
    public var response: ExaminedResponse?
    /// The scope to ask for, by a scheme that knows scopes.
    public var scope: Scope
    /// The realm that is meant; `nil`: any.
    public var realm: String?
    /// The address that was asked for.
    public var url: WebURL
    /// The credential, its latch open; `nil` where the configuration names none.
    public var use: CredentialUse?
    /// The world.
    public var conversation: Conversation

    /// An occasion.
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

    /// The credential. Throws `no-credential` where none is named.
    func requireUse() throws(LoginFailure) -> CredentialUse {
        guard let use else {
            throw LoginFailure(
                .noCredential, challenge: name,
                detail: "The challenge \"\(name)\" names no `credential`, which this scheme needs. Add it.")
        }
        return use
    }

    /// A step, for `login` and the log.
    func report(_ text: String) {
        conversation.report(ConversationStep(challenge: name, text: text))
    }
}
