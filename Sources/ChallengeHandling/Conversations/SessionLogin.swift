// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// Login from start to end, which establishes a session.
///
/// The caller ensures that one login runs at a time per session key.
public protocol SessionLogin: Sendable {
    /// Logs in and returns the session, or throws the reason.
    ///
    /// Sends no credential whose latch is closed, and closes the latch of a credential that is rejected.
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session

    /// Checks if `held`, a session of this login, still works, after a response that looks like its challenge.
    ///
    /// Sends no credential. Called only if `Authenticator.confirmsSessions` is true, and once at a time per session
    /// key.
    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation
}

/// Cause of a login.
public struct LoginOccasion: Sendable {
    /// Requested scope.
    public var scope: Scope
    /// Response that required the login, or nil without a challenge.
    ///
    /// Nil at start-up, for a renewal, and before a request whose body could not be sent again. The address of an
    /// unsafe request (RFC 9110 §9.2.1) has no query here, so that no login can execute that request.
    public var challenge: ExaminedResponse?
    /// Address of the waiting request without its query, or nil if no request waits.
    ///
    /// A login without a challenge may send GET or HEAD to this address to find the challenge.
    public var target: WebURL?
    /// True if other nodes log in for the same session: one may have used an attempt since the challenge was sent.
    public var isShared: Bool

    /// Creates an occasion.
    public init(
        scope: Scope = .empty, challenge: ExaminedResponse? = nil, target: WebURL? = nil, isShared: Bool = false
    ) {
        self.scope = scope
        self.isShared = isShared
        self.challenge = challenge
        self.target = target?.withoutQuery
        if let challenge, challenge.method != .get, challenge.method != .head {
            self.challenge?.url = challenge.url.withoutQuery
        }
    }
}

/// Result of checking if a held session still works, after a response that looks like its challenge.
public enum SessionConfirmation: Sendable, Equatable {
    /// The session has ended, or its state cannot be determined: the next request starts a login.
    case over
    /// A credential that was accepted before was refused, and no other address shows if it is still accepted: it is sent again
    /// at that time, in ms since 1970, and the next refusal counts.
    case postponed(until: Int64)
    /// The session works at an address that requires one: the response concerned its own resource.
    case stillGood
    /// The server gave no usable answer: the session is kept, and not checked again for a moment.
    case unknown
}

extension SessionLogin {
    /// Returns `.over`: without an address to check, a challenge counts as the end of the session.
    public func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation { .over }
}

/// Ending of a session at its server, so that it cannot be used any more.
public protocol SessionLogout: Sendable {
    /// Ends `session` at the server.
    ///
    /// Throws if the server did not confirm; the session is dropped here in any case.
    func end(_ session: Session, _ conversation: Conversation) async throws(LoginFailure)
    /// True if one logout ends the login's sessions of all scopes.
    var endsAllScopes: Bool { get }
}

extension SessionLogout {
    /// By default, each scope has its own logout.
    public var endsAllScopes: Bool { false }
}
