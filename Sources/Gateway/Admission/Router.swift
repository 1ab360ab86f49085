// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Which upstream a local request goes to: the first route that takes it, else the listener's own upstream.
package struct Router: Sendable {
    /// A route: what it takes, and where to.
    package struct Route: Sendable {
        /// The host name it takes, without port, as names are compared; `nil`: any.
        package let host: String?
        /// The path it takes and all below it; `nil`: any. Ends in a slash, or is one path exactly and all below.
        package var path: String?
        /// The methods it takes; `nil`: any.
        package var methods: Set<String>?
        /// The uids it takes; `nil`: any.
        package var users: Set<UInt32>?
        /// Where to, by name.
        package var upstream: String
        /// Whether `path` is taken off before the rest goes upstream.
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

    /// Where a request went, or why nowhere.
    package enum Decision: Sendable, Equatable {
        /// Read as upstreams may read it, the path goes elsewhere than by its letters.
        case ambiguous
        case found(Destination)
        /// Routes would take it, but not from this caller.
        case notAllowed
        case none
    }

    /// The routes in order.
    package let routes: [Route]
    /// Where requests go that no route takes.
    package let fallback: String?

    /// A router.
    package init(routes: [Route] = [], fallback: String?) {
        self.routes = routes
        self.fallback = fallback
    }

    /// Whether every request goes to the fallback.
    package var isTrivial: Bool { routes.isEmpty }

    /// Decides. `host` without port; `path` as it came, without query; `user`: the caller's uid if known.
    ///
    /// The path goes upstream as it came, where `/x/../accounts` or `/%61ccounts` may mean what a route guards: a path
    /// that another reading would send elsewhere is not decided.
    package func decide(host: String, path: String, method: String, user: UInt32?) -> Decision {
        let host = HostPolicy.canonical(host)
        let decision = decide(host: host, literalPath: path, method: method, user: user)
        // What goes nowhere needs no second look.
        guard case .found = decision else { return decision }
        let read = PathReading.normalized(path)
        guard read != path else { return decision }
        let other = decide(host: host, literalPath: read, method: method, user: user)
        return other.isSamePlace(as: decision) ? decision : .ambiguous
    }

    private func decide(host: String, literalPath path: String, method: String, user: UInt32?) -> Decision {
        var isHidden = false
        for (number, route) in routes.enumerated() {
            if let wanted = route.host, wanted != host { continue }
            if let prefix = route.path, !Self.takes(prefix, path) { continue }
            if let methods = route.methods, !methods.contains(method) { continue }
            if let users = route.users {
                guard let user, users.contains(user) else {
                    isHidden = true
                    continue
                }
            }
            var stripped = 0
            if route.stripsPrefix, let prefix = route.path {
                stripped = prefix.hasSuffix("/") ? prefix.utf8.count - 1 : prefix.utf8.count
            }
            return .found(Destination(upstream: route.upstream, stripped: stripped, route: number))
        }
        if let fallback { return .found(Destination(upstream: fallback)) }
        return isHidden ? .notAllowed : .none
    }

    /// Whole segments only: `/a` takes `/a` and `/a/b`, not `/ab`.
    private static func takes(_ prefix: String, _ path: String) -> Bool {
        // By bytes: for `hasPrefix` a slash with an accent behind it is another sign, and would lead around the route.
        guard path.utf8.starts(with: prefix.utf8) else { return false }
        return prefix.hasSuffix("/") || path.utf8.count == prefix.utf8.count
            || path.utf8.dropFirst(prefix.utf8.count).first == UInt8(ascii: "/")
    }
}

extension Router.Decision {
    /// Whether both lead to one route, or both nowhere.
    fileprivate func isSamePlace(as other: Router.Decision) -> Bool {
        switch (self, other) {
        case (.found(let one), .found(let two)): one.upstream == two.upstream && one.route == two.route
        default: self == other
        }
    }
}
