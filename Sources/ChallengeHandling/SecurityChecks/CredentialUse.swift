// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// A credential, with the value that is about to be sent, and the latch that guards it.
public struct CredentialUse: Sendable {
    /// The latch's key.
    public let key: LatchKey
    /// The credential as it was when it was looked up. A latch closes for this value, also where it has changed since.
    public let credential: Credential
    /// After what time a latch that a rejection closed opens by itself; `nil`: never (`retry-rejected`).
    public let retryRejectedAfter: Duration?

    /// A use of `credential`.
    public init(key: LatchKey, credential: Credential, retryRejectedAfter: Duration? = nil) {
        self.key = key
        self.credential = credential
        self.retryRejectedAfter = retryRejectedAfter
    }

    /// Looks a credential up for the challenge of `key`. Throws `no-credential` where no source knows it, `login-failed`
    /// where a source cannot be read, and `login-latched` where this value was rejected before. Sends nothing.
    public static func look(
        up key: LatchKey, retryRejectedAfter: Duration? = nil, in conversation: Conversation
    ) async throws(LoginFailure) -> CredentialUse {
        let credential = try await conversation.credential(named: key.credential, for: key.challenge)
        let use = CredentialUse(key: key, credential: credential, retryRejectedAfter: retryRejectedAfter)
        try use.requireOpenLatch(in: conversation)
        return use
    }

    /// Throws `login-latched` where this value was rejected before.
    public func requireOpenLatch(in conversation: Conversation) throws(LoginFailure) {
        if let refusal = conversation.attempts.refusal(of: self, now: conversation.now()) { throw refusal.failure }
    }

    /// Closes the latch, durably, and returns the failure that ends the login. `serverWait` is the moment until which the
    /// server asks to wait (`Retry-After`), if it does.
    ///
    /// Balancers add `Retry-After` to any 401, so it opens nothing: it postpones what `retry-rejected` opens. Only an account that
    /// the server calls locked opens at the time that it names.
    public func reject(
        _ reason: Latch.Reason, serverWait: Int64?, in conversation: Conversation
    ) -> LoginFailure {
        let now = conversation.now()
        let opensAt = opening(reason, serverWait: serverWait, now: now)
        // First the latch: whatever goes wrong from here on, the value is not sent a second time.
        let latch = Latch(reason: reason, closedAt: now, opensAt: opensAt)
        conversation.attempts.note(.rejected(latch), of: self)
        conversation.report(
            ConversationStep(
                challenge: key.challenge, text: "latch: closed for the credential \(key.credential), \(reason.rawValue)"
            ))
        return AttemptRefusal(.closed(latch), key).failure
    }

    /// The mark of this value, or `nil` if no server is known to have accepted it.
    func acceptance(in conversation: Conversation) -> Acceptance? {
        conversation.attempts.acceptance(of: self)
    }

    /// Keeps the mark that this value was accepted, at `path` where an address showed it.
    package func accept(at path: String? = nil, in conversation: Conversation) {
        conversation.attempts.note(.accepted(Acceptance(path: path, at: conversation.now())), of: self)
    }

    /// Takes the mark away: the next refusal of this value counts.
    func withdrawAcceptance(in conversation: Conversation) {
        conversation.attempts.note(.forbidden, of: self)
    }

    /// The shortest time after which a locked account is tried again, in milliseconds.
    private static let shortestLock: Int64 = 60_000

    private func opening(_ reason: Latch.Reason, serverWait: Int64?, now: Int64) -> Int64? {
        if reason == .locked, let serverWait { return max(serverWait, now.saturatingAdd(Self.shortestLock)) }
        guard let retryRejectedAfter else { return nil }
        let own = now.addingReportingOverflow(retryRejectedAfter.milliseconds)
        return own.overflow ? nil : max(own.partialValue, serverWait ?? own.partialValue)
    }
}

extension Duration {
    /// Whole milliseconds, at most what 64 bits hold.
    package var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        let whole = seconds.multipliedReportingOverflow(by: 1000)
        guard !whole.overflow else { return seconds < 0 ? .min : .max }
        let sum = whole.partialValue.addingReportingOverflow(attoseconds / 1_000_000_000_000_000)
        return sum.overflow ? whole.partialValue : sum.partialValue
    }
}
