// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Logins of one upstream, and the lookup of those that apply to a path.
///
/// Challenge handlers are dispatched by location pattern: the most specific pattern that covers the location hides all
/// others. Logins without a challenge (`inject`) and the upstream's own MobileFirst client are not dispatched: they
/// apply to all locations that they cover.
public struct Authenticators: Sendable {
    private var everywhere: [Authenticator] = []
    private var covering: [(pattern: LocationPattern, login: Authenticator)] = []
    private var dispatched = LocationTable<Authenticator>()
    /// All logins, in the order of the configuration, for `login`, `sessions` and readiness.
    public private(set) var all: [Authenticator] = []

    /// Creates an empty set.
    public init() {}

    /// Adds a login for the whole upstream.
    public mutating func add(_ login: Authenticator) {
        everywhere.append(login)
        all.append(login)
        if login.scopeOfRoute != nil { isUniform = false }
    }

    /// Adds a login for the locations of `pattern`.
    public mutating func add(_ login: Authenticator, at pattern: LocationPattern) {
        all.append(login)
        isUniform = false
        if login.trigger.detector == nil {
            covering.append((pattern, login))
        } else {
            dispatched.register(login, at: pattern)
        }
    }

    /// True if the same logins and scopes apply to every path, so that no lookup per request is needed.
    public private(set) var isUniform = true

    /// True if there is no login.
    public var isEmpty: Bool { all.isEmpty }

    /// Returns the logins for `location`, in the order in which they examine responses.
    public func matching(_ location: Location) -> [Authenticator] {
        everywhere
            + covering.filter { $0.pattern.covers(location) }.map(\.login)
            + (dispatched.match(location)?.handlers ?? [])
    }

    /// Logins that apply to every path.
    public var unconditional: [Authenticator] { everywhere }
}
