// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

/// The ways in which a login ends without a failure. Only one of them is a word of the server.
package enum LoginSuccess: String, Sendable {
    /// The server asked for nothing where the login looked.
    case notAsked = "not-asked"
    /// No server was asked: fixed fields, or answers that are known already.
    case ready
    /// The session is made, and the server has not judged it yet (Basic, Digest, a fixed token).
    case unproven
    /// The server has accepted the login.
    case won

    /// The end of a login with `session`. `isSilent`: it has told no step, so it asked nobody.
    package init(_ session: Session, isSilent: Bool) {
        if !session.isProven {
            self = .unproven
        } else if session.isEmpty {
            self = .notAsked
        } else {
            self = isSilent ? .ready : .won
        }
    }
}

/// Logins whose sessions no server has judged yet, with what led to them and how long they took.
package struct UnprovenLogins: Sendable {
    /// So many are remembered.
    private static let most = 1024
    private var logins: [SessionKey: (cause: LoginCause, duration: Duration)] = [:]

    /// None.
    package init() {}

    /// A login has ended so.
    package mutating func enter(_ key: SessionKey, _ cause: LoginCause, after duration: Duration) {
        if logins.count >= Self.most { logins.removeAll() }
        logins[key] = (cause, duration)
    }

    /// Removes and returns the login of `key`, which has been judged.
    package mutating func take(_ key: SessionKey) -> (cause: LoginCause, duration: Duration)? {
        logins.removeValue(forKey: key)
    }
}
