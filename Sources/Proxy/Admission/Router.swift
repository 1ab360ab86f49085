// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import ChallengeClient
internal import ChallengeHandling
internal import HTTPWire

/// Chooses the upstream of a local request: that of the first matching route, else the listener's own.
package struct Router: Sendable {
    /// A route: conditions, and an upstream.
    package struct Route: Sendable {
        /// The host name in canonical form, without port; `nil` for any.
        package let host: String?
        /// The path, with all paths below it; `nil` for any. A trailing slash excludes the path itself.
        package var path: String?
        /// The methods; `nil` for any.
        package var methods: Set<String>?
        /// The uids that may use the route; `nil` for any. Others are refused, and no later route is tried.
        package var users: Set<UInt32>?
        /// The name of the upstream.
        package var upstream: String
        /// True if `path` is removed before the request goes upstream.
        package var stripsPrefix: Bool

        /// Makes a route.
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

    /// The destination of a request.
    package struct Destination: Sendable, Equatable {
        /// The name of the upstream.
        package var upstream: String
        /// The number of bytes to remove from the front of the path. The rest begins with a slash.
        package var stripped: Int
        /// The number of the route, from 0; `nil` without one.
        package var route: Int?

        /// Makes a destination.
        package init(upstream: String, stripped: Int = 0, route: Int? = nil) {
            self.upstream = upstream
            self.stripped = stripped
            self.route = route
        }
    }

    /// Destination of a request, or the reason why it has none.
    package enum Decision: Sendable, Equatable {
        /// Another reading of the path matches a route with another upstream or other users.
        case ambiguous
        case found(Destination)
        case none
        /// The route with that number matches, and its users do not name the caller.
        case notAllowed(route: Int)
    }

    /// The routes in order.
    package let routes: [Route]
    /// The upstream of requests that match no route.
    package let fallback: String?
    private let index: RouteIndex

    /// Makes a router.
    package init(routes: [Route] = [], fallback: String?) {
        self.routes = routes
        self.fallback = fallback
        index = RouteIndex(routes, fallback: fallback)
        usesHosts = routes.contains { $0.host != nil }
    }

    /// True if every request goes to the fallback.
    package var isTrivial: Bool { routes.isEmpty }

    /// True if a route is for one host name only.
    package let usesHosts: Bool

    /// The users of all routes together, if each route has users and there is no fallback; else `nil`.
    var users: Set<UInt32>? {
        guard fallback == nil, !routes.isEmpty else { return nil }
        var all: Set<UInt32> = []
        for route in routes {
            guard let users = route.users else { return nil }
            all.formUnion(users)
        }
        return all
    }

    /// Decides by the first route that matches host, path and method; its `users` only refuse. `host` is without port, `path`
    /// unchanged and without query, and `user` the caller's uid, if known.
    ///
    /// The path is matched as received, because it is forwarded as received. Servers read `/x/../accounts`,
    /// `/%61ccounts` or `/ACCOUNTS` differently. If one reading matches a route with another upstream or other users,
    /// the path is ambiguous.
    package func decide(host: String, path: String, method: String, user: UInt32?) -> Decision {
        let host = HostPolicy.canonical(host)
        // An address without a path means the root (RFC 9110 §4.2.3), and goes upstream as such.
        let path = path.isEmpty ? "/" : path
        let bytes = path.utf8.span
        let number = index.first(host: host, path: bytes, method: method)
        guard let upstream = number.map({ routes[$0].upstream }) ?? fallback else { return .none }
        if let number, let users = routes[number].users, !(user.map(users.contains) ?? false) {
            return .notAllowed(route: number)
        }
        guard isRead(bytes, alikeFor: number, host: host, method: method) else { return .ambiguous }
        return .found(Destination(upstream: upstream, stripped: number.map { routes[$0].stripped } ?? 0, route: number))
    }

    /// Returns true if every reading of `path` matches a route with the users and upstream of the one found.
    private func isRead(_ path: Span<UInt8>, alikeFor found: Int?, host: String, method: String) -> Bool {
        let isPlain = NormalizedPaths.isPlain(path)
        let ignoresCase = index.hasCapitals || path.contains(where: \.isCapital)
        guard !isPlain || ignoresCase, index.dependsOnPath(host: host, method: method) else { return true }
        func isSame(_ reading: Span<UInt8>) -> Bool {
            index.areEqual(index.first(host: host, path: reading, method: method), found)
                && index.areEqual(index.first(host: host, path: reading, method: method, ignoringCase: true), found)
        }
        guard !isPlain else { return isSame(path) }
        return NormalizedPaths.allSatisfy(path.array) { isSame($0.span) }
    }
}

extension Router.Route {
    /// The number of bytes that the route removes from the front of a path.
    fileprivate var stripped: Int {
        guard stripsPrefix, let path else { return 0 }
        return path.utf8.last == .slash ? path.utf8.count - 1 : path.utf8.count
    }
}

extension UInt8 {
    var isCapital: Bool { self &- 0x41 < 26 }
}

extension Span<UInt8> {
    fileprivate func contains(where condition: (UInt8) -> Bool) -> Bool {
        for index in indices where condition(self[index]) { return true }
        return false
    }
}

/// The challenges that are configured for a path at an upstream, compared over all readings of the path.
///
/// A location pattern limits where a credential is sent. `/admin/%2e%2e/uploads/x` would send the credential of
/// `/admin/*` to the server of `/uploads`.
package enum ChallengesByPath {
    /// Returns true if all readings of `path` have the same challenges. `path` is the part after the path of the upstream's
    /// `url`, without a query.
    package static func agree(on path: Span<UInt8>, at plan: UpstreamPlan) -> Bool {
        guard !plan.logins.isUniform, !NormalizedPaths.isPlain(path) else { return true }
        var whole = plan.basePath
        for index in path.indices { whole.append(path[index]) }
        if whole.first != .slash { whole.insert(.slash, at: 0) }
        let own = challenges(at: whole, of: plan)
        return NormalizedPaths.allSatisfy(whole) { challenges(at: $0, of: plan) == own }
    }

    private static func challenges(at path: [UInt8], of plan: UpstreamPlan) -> [String] {
        let url = WebURL(origin: plan.base.origin, path: String(decoding: path, as: UTF8.self))
        return plan.logins.matching(Location(url)).map(\.name)
    }
}
