// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
public import Secrets

/// Program-defined handler of HTTP authentication challenges (RFC 9110 §11).
///
/// Challenges of a 401, for ordinary requests and WebSocket handshakes. Named after Kaazing's class. Handlers are
/// objects, so that one can be unregistered.
public protocol ChallengeHandler: AnyObject, Sendable {
    /// True if servers may authenticate the whole connection by an answer, as with NTLM and Negotiate; false by default.
    ///
    /// Requests without the answer then never use the connection.
    var bindsConnections: Bool { get }
    /// Returns true if the handler can answer `request`; must not block or have effects.
    ///
    /// Called on the client's own thread.
    func canHandle(_ request: ChallengeRequest) -> Bool
    /// Returns the answer, or nil to pass the challenge to the sender of the request.
    ///
    /// Called again, up to eight times, while the answer is wrong (`isRepeated`).
    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse?
}

extension ChallengeHandler {
    /// False.
    public var bindsConnections: Bool { false }
}

/// Challenge, with the address at which it occurred.
public struct ChallengeRequest: Sendable {
    /// Address of the request. Its query may contain secrets.
    public let url: WebURL
    /// Challenge with scheme, realm and other parameters.
    public let challenge: AuthenticationChallenge
    /// True if the challenge was already answered in this conversation: the answer was wrong.
    public let isRepeated: Bool
    /// Environment of the conversation; nil during `canHandle`.
    public let conversation: Conversation?
    /// Dispatchers that have already passed on the request.
    private var dispatchers: [ObjectIdentifier] = []

    /// Creates a request.
    public init(
        url: WebURL, challenge: AuthenticationChallenge, isRepeated: Bool = false, conversation: Conversation? = nil
    ) {
        self.url = url
        self.challenge = challenge
        self.isRepeated = isRepeated
        self.conversation = conversation
    }

    /// Address, for location patterns.
    public var location: Location { Location(url) }

    /// Realm, if the challenge names one.
    public var realm: String? { challenge["realm"] }

    /// Returns the request as `dispatcher` passes it on.
    func dispatched(by dispatcher: DispatchChallengeHandler) -> ChallengeRequest {
        var request = self
        request.dispatchers.append(ObjectIdentifier(dispatcher))
        return request
    }

    /// Returns true if `dispatcher`, registered in a cycle, has already passed on the request.
    func wasDispatched(by dispatcher: DispatchChallengeHandler) -> Bool {
        dispatchers.contains(ObjectIdentifier(dispatcher))
    }
}

/// Answer to a challenge: `Authorization` for the request and others of the same protection space.
public struct ChallengeResponse: Sendable {
    let session: Session

    /// Creates an answer from the complete value of `Authorization`: `Bearer …`.
    public init(credentials: Secret) {
        session = Session(fields: [InjectedField(name: .authorization, value: credentials)])
    }

    /// Creates an answer from the fields of `session`, until it ends.
    public init(_ session: Session) { self.session = session }
}

/// Provider of user name and password for a challenge, usually by asking a person.
public protocol LoginHandler: Sendable {
    /// Returns user name and password, or nil to give up; called again, with `isRepeated`, if they were wrong.
    func credentials(for request: ChallengeRequest) async throws -> LoginCredentials?
}

/// User name and password.
public struct LoginCredentials: Sendable {
    /// User name.
    public let username: String
    /// Password.
    public let password: Secret

    /// Creates credentials from a password that is already a secret.
    public init(username: String, password: Secret) {
        self.username = username
        self.password = password
    }

    /// Creates credentials from a password in plain text.
    public init(username: String, password: String) {
        self.init(username: username, password: Secret(password))
    }
}
