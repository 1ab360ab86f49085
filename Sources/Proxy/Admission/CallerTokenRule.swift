// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Tokens of a listener: each request must carry one of them.
package struct CallerTokenRule: Sendable {
    let field: CallerField
    /// The names of the credentials with the tokens.
    let credentials: [String]
    /// The tokens that are known.
    let tokens: CallerTokens

    /// Makes a rule.
    package init(field: CallerField, credentials: [String], tokens: CallerTokens) {
        self.field = field
        self.credentials = credentials
        self.tokens = tokens
    }
}

/// Tokens of a listener as its worker read them last.
struct CallerTokenSnapshot {
    private var table: CallerTokenTable?

    /// Returns the present tokens. Takes a lock only after a change.
    mutating func current(of rule: CallerTokenRule) -> CallerTokenTable {
        if let table, table.version == rule.tokens.version { return table }
        let renewed = rule.tokens.table(of: rule.credentials)
        table = renewed
        return renewed
    }
}

extension AcceptedCaller {
    /// Finds out which caller sent a request, by its token. Returns the reply that refuses the request, or `nil`.
    func identify(_ head: RequestHead, in bytes: Span<UInt8>) -> LocalReply? {
        named = nil
        guard let rule = listener.tokens else { return nil }
        let table = acceptor.tokens.current(of: rule)
        if let token = rule.field.token(of: head, in: bytes), token.end <= bytes.count {
            named = table.caller(presenting: bytes.extracting(token.bounds))
        }
        guard named == nil else { return nil }
        return table.isComplete ? .callerNotKnown(by: rule.field, at: listener) : .tokensMissing(at: listener)
    }
}

extension LocalReply {
    /// Returns the reply to a request without a right token.
    fileprivate static func callerNotKnown(by field: CallerField, at listener: ListenerPlan) -> LocalReply {
        LocalReply(
            .callerNotKnown,
            detail: """
                Listener \(listener.name) serves callers with a token, and the request has none that it knows. Send the token of one \
                of its `callers` \(field.isBearer ? "as `Authorization: Bearer TOKEN`" : "in the field of `callers`").
                """, authenticate: field.challenge)
    }

    /// Returns the reply while tokens of the listener are missing: the request may have one of them.
    fileprivate static func tokensMissing(at listener: ListenerPlan) -> LocalReply {
        LocalReply(
            .noCredential, status: 503,
            detail: """
                Not every token of the `callers` of listener \(listener.name) is known to the daemon, and the request has none of \
                the others. The daemon's log names the credential.
                """, retryAfter: 10)
    }
}
