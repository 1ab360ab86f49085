// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Step of a conversation, shown by `countersign login`, the log and the status page.
///
/// Redacted by construction: contains only names, statuses and fixed text.
public struct ConversationStep: Sendable, Equatable {
    /// Kinds of steps.
    public enum Kind: Sendable {
        /// The login asked somebody: a server, a helper or a KDC.
        case exchange
        /// The login only prepared something. If there is nothing else, no login took place.
        case remark
    }

    /// Challenge of the step or, for a MobileFirst client, the upstream.
    public var challenge: String
    /// Description of the step: "preauthorize: 401, challenge for PinCodeAttempts, 3 attempts remain".
    public var text: String
    /// Kind of the step.
    public var kind: Kind

    /// Creates a step.
    public init(challenge: String, text: String, kind: Kind = .exchange) {
        self.challenge = challenge
        self.text = text
        self.kind = kind
    }
}

/// Environment of a login: side requests, credentials, attempt gate, stored state, and the time.
public struct Conversation: Sendable {
    /// Requests of the login itself.
    public let sideRequests: any SideRequests
    /// Credential store.
    public let credentials: any CredentialProvider
    /// Attempt gate.
    public let attempts: any AttemptControl
    /// State that survives a restart.
    public let state: any StateStore
    /// Turns among the processes that use this state.
    public let turns: any LoginTurns
    /// Wall clock, in ms since 1970.
    public let now: @Sendable () -> Int64
    /// Observer of the login's waits in a queue of logins: true when one begins, false when it ends.
    public let waiting: @Sendable (Bool) -> Void
    /// Observer of each step.
    public let report: @Sendable (ConversationStep) -> Void

    /// Creates a conversation.
    public init(
        sideRequests: any SideRequests, credentials: any CredentialProvider, attempts: any AttemptControl,
        state: any StateStore, turns: any LoginTurns = UnsharedTurns(), now: @escaping @Sendable () -> Int64,
        waiting: @escaping @Sendable (Bool) -> Void = { _ in },
        report: @escaping @Sendable (ConversationStep) -> Void = { _ in }
    ) {
        self.sideRequests = sideRequests
        self.credentials = credentials
        self.attempts = attempts
        self.state = state
        self.turns = turns
        self.now = now
        self.waiting = waiting
        self.report = report
    }
}

extension Conversation {
    /// Returns the credential of that name, for `challenge`.
    ///
    /// Throws `no-credential` if no source has the credential, and `login-failed` if a source cannot be read.
    ///
    /// The empty name is that of a login without a credential, which has no fields.
    func credential(named name: String, for challenge: String) async throws(LoginFailure) -> Credential {
        if name.isEmpty { return Credential(name: "", fields: [:]) }
        let found: Credential?
        do throws(CredentialError) {
            found = try await credentials.credential(named: name)
        } catch {
            throw LoginFailure(
                error.isAbsent ? .noCredential : .failed, challenge: challenge, detail: error.publicReason,
                cause: error.publicReason == error.reason ? "" : error.reason)
        }
        guard let found else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "No source knows the credential \"\(name)\". \(credentials.advice(onMissing: name))")
        }
        return found
    }
}
