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
        guard let latch = conversation.latches.closedLatch(key, for: credential, now: conversation.now()) else {
            return
        }
        let happened = latch.reason == .locked ? "The server locked the account of" : "The server rejected"
        throw LoginFailure(
            .latched, challenge: key.challenge,
            detail: "\(happened) the credential \"\(key.credential)\" at \(Moment.text(latch.closedAt)), so it is not "
                + "sent again. \(remedy)",
            retryAt: latch.opensAt)
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
        conversation.latches.close(key, for: credential, Latch(reason: reason, closedAt: now, opensAt: opensAt))
        conversation.report(
            ConversationStep(
                challenge: key.challenge, text: "latch: closed for the credential \(key.credential), \(reason.rawValue)"
            ))
        switch reason {
        case .locked:
            return LoginFailure(
                .accountLocked, challenge: key.challenge,
                detail:
                    "The server rejected the credential \"\(key.credential)\" and locked the account. It is not sent "
                    + "again. Have the account unlocked. \(remedy)",
                retryAt: opensAt)
        case .rejected:
            return LoginFailure(
                .rejected, challenge: key.challenge,
                detail: "The server rejected the credential \"\(key.credential)\". It is not sent again. \(remedy)",
                retryAt: opensAt)
        }
    }

    /// The mark of this value, or `nil` if no server is known to have accepted it.
    func acceptance(in conversation: Conversation) -> Acceptance? {
        conversation.latches.acceptance(key, of: credential)
    }

    /// Keeps the mark that this value was accepted, at `path` where an address showed it.
    package func accept(at path: String? = nil, in conversation: Conversation) {
        conversation.latches.accept(key, credential, Acceptance(path: path, at: conversation.now()))
    }

    /// Takes the mark away: the next refusal of this value counts.
    func withdrawAcceptance(in conversation: Conversation) {
        conversation.latches.withdrawAcceptance(key, of: credential)
    }

    /// The shortest time after which a locked account is tried again, in milliseconds.
    private static let shortestLock: Int64 = 60_000

    private func opening(_ reason: Latch.Reason, serverWait: Int64?, now: Int64) -> Int64? {
        if reason == .locked, let serverWait { return max(serverWait, now.saturatingAdd(Self.shortestLock)) }
        guard let retryRejectedAfter else { return nil }
        let own = now.addingReportingOverflow(retryRejectedAfter.milliseconds)
        return own.overflow ? nil : max(own.partialValue, serverWait ?? own.partialValue)
    }

    private var remedy: String {
        "Change the credential, or run `countersign unlatch \(key.challenge)`."
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
