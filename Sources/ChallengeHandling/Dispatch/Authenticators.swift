// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The logins of one upstream, and which of them stand ready for a path there.
///
/// Challenge handlers are dispatched by location pattern: the most specific pattern that covers the location wins and
/// hides all others. What needs no challenge (`inject`) and the upstream's own MobileFirst client are not dispatched:
/// they stand wherever they cover.
public struct Authenticators: Sendable {
    private var everywhere: [Authenticator] = []
    private var covering: [(pattern: LocationPattern, login: Authenticator)] = []
    private var dispatched = LocationTable<Authenticator>()
    /// All of them, for `login`, `sessions` and readiness, in the order of the configuration.
    public private(set) var all: [Authenticator] = []

    /// No logins.
    public init() {}

    /// Puts `login` in front of everything at the upstream.
    public mutating func stand(_ login: Authenticator) {
        everywhere.append(login)
        all.append(login)
        if login.scopeOfRoute != nil { isUniform = false }
    }

    /// Puts `login` at `pattern`.
    public mutating func stand(_ login: Authenticator, at pattern: LocationPattern) {
        all.append(login)
        isUniform = false
        if login.trigger.detector == nil {
            covering.append((pattern, login))
        } else {
            dispatched.register(login, at: pattern)
        }
    }

    /// Whether the same logins stand at every path and ask for the same there, so that they need not be looked up for each
    /// request.
    public private(set) var isUniform = true

    /// Whether there is none at all.
    public var isEmpty: Bool { all.isEmpty }

    /// The logins that stand ready at `location`, in the order in which responses are shown to them.
    public func standing(at location: Location) -> [Authenticator] {
        everywhere
            + covering.filter { $0.pattern.covers(location) }.map(\.login)
            + (dispatched.match(location)?.handlers ?? [])
    }

    /// The logins that stand at every path.
    public var standingEverywhere: [Authenticator] { everywhere }
}
