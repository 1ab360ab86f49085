// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// The receiver of login events, for log, audit record, metrics and the demo.
///
/// Called on a worker's thread; must not block.
package protocol LoginObserver: Sendable {
    /// Reports the beginning of a login. No other login of that key begins before its end.
    func loginBegan(_ key: SessionKey, _ cause: LoginCause)
    /// Reports a step of a login, redacted.
    func loginStepped(_ key: SessionKey, _ step: ConversationStep)
    /// Reports the end of a login. Without a beginning, a session was refused outside of a login.
    func loginEnded(
        _ key: SessionKey, _ result: Result<Session, LoginFailure>, _ cause: LoginCause, after duration: Duration)
    /// Reports that the server has accepted a session that was unverified; once per login.
    func sessionAccepted(_ key: SessionKey)
    /// Reports that a session was ended at its server, or the failure to do so.
    func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?)
    /// Reports that a session established by another node was adopted here.
    func sessionShared(_ key: SessionKey)
    /// Reports text of an upstream's challenges that was not understood, each time.
    func challengeUnread(_ text: String, by upstream: String)
    /// Reports that the server accepts sessions only under the `User-Agent` of their login; once until that changes.
    func sessionIsBound(_ key: SessionKey, to userAgent: String)
}

extension LoginObserver {
    /// Does nothing: observers may ignore this event.
    package func sessionAccepted(_ key: SessionKey) {}
    /// Does nothing: observers may ignore this event.
    package func logoutEnded(_ key: SessionKey, _ failure: LoginFailure?) {}
    /// Does nothing: observers may ignore this event.
    package func sessionShared(_ key: SessionKey) {}
    /// Does nothing: observers may ignore this event.
    package func challengeUnread(_ text: String, by upstream: String) {}
    /// Does nothing: observers may ignore this event.
    package func sessionIsBound(_ key: SessionKey, to userAgent: String) {}
}

/// The cause and the caller of a login, for the log and the audit record.
package struct LoginCause: Sendable, Equatable {
    /// The kind of cause; the raw value is for the log.
    package enum Kind: String, Sendable {
        /// The value of its credential has changed.
        case change = "credential-change"
        /// A health check of the upstream.
        case check = "upstream-check"
        /// `countersign login`.
        case command
        /// The retry of a login that failed a while ago.
        case recovery
        /// The session is close to its expiry.
        case renewal
        /// A caller's request.
        case request
        /// The session is configured to exist before the first request.
        case start = "at-start"
    }

    /// The kind of cause.
    package let kind: Kind
    /// The request that led to the login.
    package let exchange: ExchangeID?
    /// The identity of its caller, if known.
    package let caller: CallerIdentity?

    /// Creates a cause.
    package init(_ kind: Kind, exchange: ExchangeID? = nil, caller: CallerIdentity? = nil) {
        self.kind = kind
        self.exchange = exchange
        self.caller = caller
    }

    /// True if a valid session is to be replaced.
    package var isRenewal: Bool { kind == .renewal || kind == .change }
}

/// The ways in which a login ends without a failure. Only `won` is confirmed by the server.
package enum LoginSuccess: String, Sendable {
    /// The server asked for nothing at the URL that the login requested.
    case notAsked = "not-asked"
    /// No server was asked: fixed fields, or answers that are known already.
    case ready
    /// The session exists, but is not verified yet by the server (Basic, Digest, a fixed token).
    case unverified
    /// The server has accepted the login.
    case succeeded

    /// Creates the end of a login with `session`. `isSilent`: there was no exchange, so no server was asked.
    package init(_ session: Session, isSilent: Bool) {
        if !session.isVerified {
            self = .unverified
        } else if session.isEmpty {
            self = .notAsked
        } else {
            self = isSilent ? .ready : .succeeded
        }
    }
}

/// The logins with unverified sessions, with cause and duration.
///
/// A login with a value that a server has accepted already wins nothing: it takes a new nonce, for example, as often as a caller
/// asks for a resource that refuses it.
package struct UnverifiedLogins: Sendable {
    /// A login that the server has not accepted yet.
    package struct Login: Sendable {
        /// The cause.
        package let cause: LoginCause
        /// The duration.
        package let duration: Duration
        fileprivate let fields: [String: Secret]?
    }

    /// The limit of stored logins, and of accepted values.
    private static let most = 1024
    private var logins: [SessionKey: Login] = [:]
    /// The values of the last logins that a server accepted.
    private var accepted: [SessionKey: [String: Secret]] = [:]

    /// Creates an empty collection.
    package init() {}

    /// Adds a login. Returns false, and adds nothing, if a server has accepted the value of `session` already.
    package mutating func add(
        _ key: SessionKey, _ session: Session, _ cause: LoginCause, after duration: Duration
    ) -> Bool {
        let fields = session.use?.credential.fields
        if let fields, accepted[key] == fields { return false }
        if logins.count >= Self.most { logins.removeAll() }
        logins[key] = Login(cause: cause, duration: duration, fields: fields)
        return true
    }

    /// Removes and returns the login of `key`, which the server has accepted.
    package mutating func accept(_ key: SessionKey) -> Login? {
        guard let login = logins.removeValue(forKey: key) else { return nil }
        if accepted.count >= Self.most { accepted.removeAll() }
        accepted[key] = login.fields
        return login
    }

    /// Removes the login of `key`, since another one has ended.
    package mutating func remove(_ key: SessionKey) { logins[key] = nil }

    /// Removes and returns the login of `key`, and forgets its value, since a login has failed.
    package mutating func fail(_ key: SessionKey) -> Login? {
        accepted[key] = nil
        return logins.removeValue(forKey: key)
    }
}
