// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
public import Secrets

/// Answers authentication challenges of HTTP (RFC 9110 section 11): those of a 401, on ordinary requests as on WebSocket
/// handshakes.
///
/// After Kaazing's class of that name. Handlers are objects, so that one can be taken back from where it was registered.
public protocol ChallengeHandler: AnyObject, Sendable {
    /// Whether it can answer `request`. Called on the client's own thread: it must look and do nothing else, and not block.
    func canHandle(_ request: ChallengeRequest) -> Bool
    /// The answer; `nil` gives up, and the challenge goes to whoever sent the request. Called again, up to eight times, while
    /// the answer is wrong (`isRepeated`).
    func handle(_ request: ChallengeRequest) async throws -> ChallengeResponse?
}

/// A challenge, and where it was met.
public struct ChallengeRequest: Sendable {
    /// The address that was asked for. Its query can hold secrets.
    public let url: WebURL
    /// The challenge: scheme, realm and whatever else the server says.
    public let challenge: AuthenticationChallenge
    /// Whether it was answered in this conversation already: the answer was wrong.
    public let isRepeated: Bool
    /// The world, as the conversation has it; `nil` while `canHandle` is asked.
    public let conversation: Conversation?
    /// The dispatchers that it has come through.
    private var dispatchers: [ObjectIdentifier] = []

    /// A request.
    public init(
        url: WebURL, challenge: AuthenticationChallenge, isRepeated: Bool = false, conversation: Conversation? = nil
    ) {
        self.url = url
        self.challenge = challenge
        self.isRepeated = isRepeated
        self.conversation = conversation
    }

    /// The address as location patterns see it.
    public var location: Location { Location(url) }

    /// The realm, where the challenge names one.
    public var realm: String? { challenge["realm"] }

    /// The request as `dispatcher` passes it on.
    func dispatched(by dispatcher: DispatchChallengeHandler) -> ChallengeRequest {
        var request = self
        request.dispatchers.append(ObjectIdentifier(dispatcher))
        return request
    }

    /// True if it has come through `dispatcher` already, which is registered in a circle.
    func wasDispatched(by dispatcher: DispatchChallengeHandler) -> Bool {
        dispatchers.contains(ObjectIdentifier(dispatcher))
    }
}

/// The answer to a challenge: what goes as `Authorization` with the request, and with those to the same protection space.
public struct ChallengeResponse: Sendable {
    let session: Session

    /// These credentials, the whole value of `Authorization`: `Bearer …`.
    public init(credentials: Secret) {
        session = Session(fields: [InjectedField(name: .authorization, value: credentials)])
    }

    /// The fields that `session` makes for each request, until it ends.
    public init(_ session: Session) { self.session = session }
}
