// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A login that stands ready at some location: what asks for it, and what wins its session.
public struct StandingLogin: Sendable {
    /// What makes an exchange ask for the session.
    public enum Trigger: Sendable, Equatable {
        /// Nothing: its fields are known without a challenge and go along with every request (`inject`).
        case ahead
        /// `WWW-Authenticate: Bearer`, of this realm only where one is named (RFC 6750 §3).
        case bearer(realm: String?)
        /// A MobileFirst resource: Bearer challenges, `insufficient_scope`, `MFP-Conflict`.
        case mobileFirst
    }

    /// The challenge's name in the configuration; for a MobileFirst upstream, the upstream's.
    public let name: String
    /// What asks for it.
    public let trigger: Trigger
    /// Whether the session is won before the first request rather than after the first challenge.
    public let isAhead: Bool
    /// What its session is held under, with the scope that is asked for where no response named one.
    public let key: SessionKey
    /// The credentials that its answers are made of, by name, for `explain`.
    public let credentials: [String]
    /// The challenges of the configuration whose handlers it asks, by name; none where it is a challenge itself.
    public let asks: [String]
    private let makeLogin: @Sendable (Scope) -> any SessionLogin

    /// A login; `makeLogin` is given the scope to ask for.
    public init(
        name: String, trigger: Trigger, isAhead: Bool, key: SessionKey, credentials: [String],
        asks: [String] = [], makeLogin: @escaping @Sendable (Scope) -> any SessionLogin
    ) {
        self.name = name
        self.trigger = trigger
        self.isAhead = isAhead
        self.key = key
        self.credentials = credentials
        self.asks = asks
        self.makeLogin = makeLogin
    }

    /// Whether a user who says `name` means this login.
    public func isMeant(by name: String) -> Bool { self.name == name || asks.contains(name) }

    /// The scope asked for where no response has named another.
    public var defaultScope: Scope { Scope(text: key.scope) }

    /// The login for a session of `scope`.
    public func login(scope: Scope) -> any SessionLogin { makeLogin(scope) }
}
