// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The upstream of a local request: that of the first route that matches, else the listener's own.
package struct Router: Sendable {
    /// A route: what it takes, and where to.
    package struct Route: Sendable {
        /// The host name it takes, without port, as names are compared; `nil`: any.
        package let host: String?
        /// The path it takes and all below it; `nil`: any. Ends in a slash, or is one path exactly and all below.
        package var path: String?
        /// The methods it takes; `nil`: any.
        package var methods: Set<String>?
        /// The uids that may use it; `nil`: any. Others are refused, and no later route is tried.
        package var users: Set<UInt32>?
        /// Where to, by name.
        package var upstream: String
        /// True if `path` is taken off before the rest goes upstream.
        package var stripsPrefix: Bool

        /// A route.
        package init(
            host: String? = nil, path: String? = nil, methods: Set<String>? = nil, users: Set<UInt32>? = nil,
            upstream: String, stripsPrefix: Bool = false
        ) {
            self.host = host.map(HostPolicy.canonical)
            self.path = path
            self.methods = methods
            self.users = users
            self.upstream = upstream
            self.stripsPrefix = stripsPrefix
        }
    }

    /// Where a request goes.
    package struct Destination: Sendable, Equatable {
        /// The upstream's name.
        package var upstream: String
        /// The bytes to take off the front of the path; what is left begins with a slash.
        package var stripped: Int
        /// The number of the route, from 0; `nil`: no route took it.
        package var route: Int?

        /// A destination.
        package init(upstream: String, stripped: Int = 0, route: Int? = nil) {
            self.upstream = upstream
            self.stripped = stripped
            self.route = route
        }
    }

    /// Where a request goes, or why nowhere.
    package enum Decision: Sendable, Equatable {
        /// Another reading of the path falls to a route with another upstream or other users.
        case ambiguous
        case found(Destination)
        case none
        /// The route of that number matches, and its users do not name the caller.
        case notAllowed(route: Int)
    }

    /// The routes in order.
    package let routes: [Route]
    /// Where requests go that no route matches.
    package let fallback: String?
    /// True if some route's path has a capital letter.
    private let hasCapitals: Bool

    /// A router.
    package init(routes: [Route] = [], fallback: String?) {
        self.routes = routes
        self.fallback = fallback
        hasCapitals = routes.contains { $0.path?.utf8.contains(where: \.isCapital) ?? false }
    }

    /// True if every request goes to the fallback.
    package var isTrivial: Bool { routes.isEmpty }

    /// True if some route is for one host name only.
    package var usesHosts: Bool { routes.contains { $0.host != nil } }

    /// The users of all routes together, where each route has some and nothing goes elsewhere; else `nil`.
    var users: Set<UInt32>? {
        guard fallback == nil, !routes.isEmpty else { return nil }
        var all: Set<UInt32> = []
        for route in routes {
            guard let users = route.users else { return nil }
            all.formUnion(users)
        }
        return all
    }

    /// Decides by the first route that matches host, path and method; `users` only refuse. `host` without port; `path` as it came,
    /// without query; `user`: the caller's uid if known.
    ///
    /// The path is matched as it came, for so it goes upstream. Servers read `/x/../accounts`, `/%61ccounts` or `/ACCOUNTS`
    /// differently: a path that some of them would take for one of a route with another upstream or other users is not decided.
    package func decide(host: String, path: String, method: String, user: UInt32?) -> Decision {
        let host = HostPolicy.canonical(host)
        // An address without a path means the root (RFC 9110 §4.2.3), and goes upstream as such.
        let path = path.isEmpty ? "/" : path
        let bytes = path.utf8.span
        let number = match(host: host, path: bytes, method: method)
        guard let upstream = number.map({ routes[$0].upstream }) ?? fallback else { return .none }
        if let number, let users = routes[number].users, !(user.map(users.contains) ?? false) {
            return .notAllowed(route: number)
        }
        guard isRead(bytes, alikeFor: number, host: host, method: method) else { return .ambiguous }
        return .found(Destination(upstream: upstream, stripped: number.map { routes[$0].stripped } ?? 0, route: number))
    }

    /// The first route that matches.
    private func match(host: String, path: Span<UInt8>, method: String, ignoringCase: Bool = false) -> Int? {
        routes.firstIndex { route in
            if let wanted = route.host, wanted != host { return false }
            if let methods = route.methods, !methods.contains(method) { return false }
            return route.takes(path, ignoringCase: ignoringCase)
        }
    }

    /// Returns whether every reading of `path` falls to a route that equals the one found in users and upstream.
    private func isRead(_ path: Span<UInt8>, alikeFor found: Int?, host: String, method: String) -> Bool {
        let isPlain = PathReadings.isPlain(path)
        let ignoresCase = hasCapitals || path.contains(where: \.isCapital)
        guard !isPlain || ignoresCase, dependsOnPath(host: host, method: method) else { return true }
        func isSame(_ reading: Span<UInt8>) -> Bool {
            areEqual(match(host: host, path: reading, method: method), found)
                && areEqual(match(host: host, path: reading, method: method, ignoringCase: true), found)
        }
        guard !isPlain else { return isSame(path) }
        return PathReadings.allSatisfy(path.indices.map { path[$0] }) { isSame($0.span) }
    }

    /// Returns whether, for that host and method, two paths can fall to routes that differ.
    private func dependsOnPath(host: String, method: String) -> Bool {
        var first: Int?
        for (number, route) in routes.enumerated() {
            if let wanted = route.host, wanted != host { continue }
            if let methods = route.methods, !methods.contains(method) { continue }
            if let first, !areEqual(first, number) { return true }
            if route.path == nil { return false }
            first = first ?? number
        }
        return first.map { !areEqual($0, nil) } ?? false
    }

    /// Returns whether two outcomes have the same upstream and the same users; `nil`: no route.
    private func areEqual(_ one: Int?, _ two: Int?) -> Bool {
        if one == two { return true }
        return (one.map { routes[$0].upstream } ?? fallback) == (two.map { routes[$0].upstream } ?? fallback)
            && one.flatMap { routes[$0].users } == two.flatMap { routes[$0].users }
    }
}

extension Router.Route {
    /// The bytes that it takes off the front of a path.
    fileprivate var stripped: Int {
        guard stripsPrefix, let path else { return 0 }
        return path.utf8.last == .slash ? path.utf8.count - 1 : path.utf8.count
    }

    /// Returns whether the path is one of the route's. Whole segments only: `/a` takes `/a` and `/a/b`, not `/ab`.
    ///
    /// By bytes: for `hasPrefix` a slash with an accent behind it is another character, and would lead around the route.
    fileprivate func takes(_ other: Span<UInt8>, ignoringCase: Bool) -> Bool {
        guard let path else { return true }
        let prefix = path.utf8.span
        guard other.count >= prefix.count else { return false }
        for index in prefix.indices where prefix[index] != other[index] {
            guard ignoringCase, prefix[index].inLowerCase == other[index].inLowerCase else { return false }
        }
        return prefix.isEmpty || prefix[prefix.count - 1] == .slash || other.count == prefix.count
            || other[prefix.count] == .slash
    }
}

extension UInt8 {
    fileprivate var isCapital: Bool { self &- 0x41 < 26 }
    fileprivate var inLowerCase: UInt8 { isCapital ? self | 0x20 : self }
}

extension Span<UInt8> {
    fileprivate func contains(where condition: (UInt8) -> Bool) -> Bool {
        for index in indices where condition(self[index]) { return true }
        return false
    }
}
