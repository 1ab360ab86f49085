// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// A credential whose value is about to be sent, and the latch that guards it.
public struct CredentialUse: Sendable {
    /// The latch's key.
    public let key: LatchKey
    /// The looked-up credential. A latch closes for this value, even if the credential has changed since.
    public let credential: Credential
    /// Time after which a latch closed by a rejection opens by itself. `nil` if it never does (`retry-rejected`).
    public let retryRejectedAfter: Duration?

    /// Creates a use of `credential`.
    public init(key: LatchKey, credential: Credential, retryRejectedAfter: Duration? = nil) {
        self.key = key
        self.credential = credential
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Looks up a credential for the challenge of `key`, without sending anything. Throws `no-credential` if no source
    /// knows the credential, `login-failed` if a source cannot be read, and `login-latched` if this value was rejected
    /// before.
    public static func lookUp(
        _ key: LatchKey, retryRejectedAfter: Duration? = nil, in conversation: Conversation
    ) async throws(LoginFailure) -> CredentialUse {
        let credential = try await conversation.credential(named: key.credential, for: key.challenge)
        let use = CredentialUse(key: key, credential: credential, retryRejectedAfter: retryRejectedAfter)
        try use.requireOpenLatch(in: conversation)
        return use
    }

    /// Throws `login-latched` if this value was rejected before.
    public func requireOpenLatch(in conversation: Conversation) throws(LoginFailure) {
        if let refusal = conversation.attempts.refusal(of: self, now: conversation.now()) { throw failure(of: refusal) }
    }

    /// Returns the failure of a refusal, which names the source of this value.
    func failure(of refusal: AttemptRefusal) -> LoginFailure {
        var refusal = refusal
        refusal.source = credential.source
        return refusal.failure
    }

    /// Throws `login-failed` if the value was submitted without a clear outcome, and the pause after that is not over.
    package func requireBudget(in conversation: Conversation) throws(LoginFailure) {
        guard !key.credential.isEmpty else { return }
        if let refusal = conversation.attempts.pause(of: self, now: conversation.now()) { throw failure(of: refusal) }
    }

    /// Counts a submission just before it is sent. Throws `login-latched` or `login-failed` if the value must not be sent now.
    ///
    /// Time has passed since the lookup.
    package func submit(in conversation: Conversation) async throws(LoginFailure) {
        try requireOpenLatch(in: conversation)
        try requireBudget(in: conversation)
        guard !key.credential.isEmpty else { return }
        await conversation.attempts.recordSubmission(of: self, isSent: true, now: conversation.now())
        // Writing the count has read the state: another process may have closed the latch.
        try requireOpenLatch(in: conversation)
    }

    /// Takes back the last submission, whose request certainly did not reach the server.
    package func withdrawSubmission(in conversation: Conversation) async {
        guard !key.credential.isEmpty else { return }
        await conversation.attempts.recordSubmission(of: self, isSent: false, now: conversation.now())
    }

    /// Closes the latch durably, and returns the failure that ends the login. `serverWait` is the time until which the
    /// server asks to wait (`Retry-After`), if it does.
    ///
    /// Load balancers add `Retry-After` to any 401, so it never opens a latch: it only postpones the opening by
    /// `retry-rejected`. Only an account that the server calls locked opens at the server's time.
    public func reject(
        _ reason: Latch.Reason, serverWait: Int64?, by evidence: Evidence? = nil, in conversation: Conversation
    ) async -> LoginFailure {
        guard !key.credential.isEmpty else {
            return LoginFailure(
                .failed, challenge: key.challenge, detail: "The server refused the login, which sends no credential.",
                retryAt: serverWait)
        }
        let now = conversation.now()
        let opensAt = opening(reason, serverWait: serverWait, now: now)
        // The latch is closed first: even if a later step fails, the value is not sent again.
        let latch = Latch(
            reason: reason, closedAt: now, opensAt: opensAt, evidence: evidence?.sentence ?? "")
        await conversation.attempts.record(.rejected(latch), of: self)
        conversation.report(
            ConversationStep(
                challenge: key.challenge, text: "latch: closed for the credential \(key.credential), \(reason.rawValue)"
            ))
        return failure(of: AttemptRefusal(.closed(latch), key))
    }

    /// Returns the record of this value's acceptance. `nil` if no server is known to have accepted the value.
    func acceptance(in conversation: Conversation) -> Acceptance? {
        conversation.attempts.acceptance(of: self)
    }

    /// Records that this value was accepted, at `path` if an address showed it.
    ///
    /// `form` is the page's form that was submitted.
    package func accept(
        at path: String? = nil, by form: AcceptedForm? = nil, in conversation: Conversation
    ) async {
        let acceptance = Acceptance(path: path, at: conversation.now(), form: form)
        await conversation.attempts.record(.accepted(acceptance), of: self)
    }

    /// Removes the record of acceptance: the next refusal of this value counts.
    func withdrawAcceptance(in conversation: Conversation) async {
        await conversation.attempts.record(.forbidden, of: self)
    }

    /// Removes the record of acceptance after a refusal that a right value may meet too, and returns the time in ms since 1970
    /// at which the value may be sent again: the next such refusal counts.
    func doubt(in conversation: Conversation) async -> Int64 {
        await withdrawAcceptance(in: conversation)
        return conversation.now().saturatingAdd(Self.doubtPause)
    }

    /// The pause before a doubted value is sent again, in milliseconds.
    private static let doubtPause: Int64 = 60_000
    /// The minimum time before a locked account is tried again, in milliseconds.
    private static let shortestLock: Int64 = 60_000

    private func opening(_ reason: Latch.Reason, serverWait: Int64?, now: Int64) -> Int64? {
        if reason == .locked, let serverWait { return max(serverWait, now.saturatingAdd(Self.shortestLock)) }
        guard let retryRejectedAfter else { return nil }
        let own = now.addingReportingOverflow(retryRejectedAfter.milliseconds)
        return own.overflow ? nil : max(own.partialValue, serverWait ?? own.partialValue)
    }
}

extension Credential {
    /// Returns the field of that name; throws `no-credential` if it is missing or empty.
    func required(_ field: String, for challenge: String) throws(LoginFailure) -> Secret {
        if let value = self[field], !value.isEmpty { return value }
        throw TemplateError.fieldMissing(field: field, credential: name).loginFailure(challenge: challenge)
    }
}
