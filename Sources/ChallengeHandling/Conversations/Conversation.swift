// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One step of a conversation, told for `countersign login`, the log and the status page. Redacted by construction:
/// only names, statuses and words of ours.
public struct ConversationStep: Sendable, Equatable {
    /// The challenge or, for a MobileFirst client, the upstream it belongs to.
    public var challenge: String
    /// What happened: "preauthorize: 401, challenge for PinCodeAttempts, 3 attempts remain".
    public var text: String

    /// A step.
    public init(challenge: String, text: String) {
        self.challenge = challenge
        self.text = text
    }
}

/// What a conversation may use of the world: its side requests, credentials, attempt gate, kept state, and the time.
public struct Conversation: Sendable {
    /// The network.
    public let sideRequests: any SideRequests
    /// The credential store.
    public let credentials: any CredentialProvider
    /// The attempt gate.
    public let attempts: any AttemptControl
    /// What survives a restart.
    public let state: any StateStore
    /// The wall clock, in milliseconds since 1970.
    public let now: @Sendable () -> Int64
    /// Told of each step as it happens.
    public let report: @Sendable (ConversationStep) -> Void

    /// A conversation.
    public init(
        sideRequests: any SideRequests, credentials: any CredentialProvider, attempts: any AttemptControl,
        state: any StateStore, now: @escaping @Sendable () -> Int64,
        report: @escaping @Sendable (ConversationStep) -> Void = { _ in }
    ) {
        self.sideRequests = sideRequests
        self.credentials = credentials
        self.attempts = attempts
        self.state = state
        self.now = now
        self.report = report
    }
}

/// Runs a login from beginning to end and wins a session.
///
/// The caller sees to it that one login runs at a time per session key; a login itself need not.
public protocol SessionLogin: Sendable {
    /// Wins a session, or says why not. Sends no credential whose latch is closed, and closes the latch of one that is
    /// rejected.
    func win(_ conversation: Conversation) async throws(LoginFailure) -> Session

    /// Asks if `held`, which this login won, still works, after a response that looks like its challenge. Sends no credential.
    ///
    /// Only logins that `Authenticator.confirmsSessions` are asked; one confirmation runs at a time per session key.
    func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation
}
