// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a response asks of one login. A detector says it by the response alone; an exchange, which knows what became of the session,
/// takes `challenged` for `refused` where the session may well be in order.
public enum Challenge: Sendable, Equatable {
    /// This login's session, or a new one in the place of that which the request carried (RFC 9110 §11.6.1, RFC 6750 §3, a login
    /// page). With words: one of that scope as well (RFC 6750 §3.1; a registry names it to a request without a session, too).
    case challenged(scope: [String] = [])
    /// Something, perhaps: the beginning of the body tells (login pages, security checks).
    case needsBody
    /// Nothing: none of this login's concerns.
    case pass
    /// Something else than the session that the request carried and that was refused (RFC 9110 §15.5.2): another login would only
    /// send the same credential in the same way again (Basic, NTLM, a fixed token).
    case refused
    /// The same request once more, with the session that it carried (409 with MobileFirst's `MFP-Conflict`).
    case replay
    /// A new session in the place of one that was right and is too old: nothing speaks against the credential (`stale` of Digest,
    /// RFC 7616 §3.3).
    case stale
}
