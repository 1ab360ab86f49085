// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Index of a listener's routes: finds the first one that matches in a time that does not grow with their number.
///
/// Routes are grouped by host, and within a host by the segments of their path. Of all that match, the smallest number
/// wins: the order of the file decides. A class, so that a copy of the router costs one reference.
final class RouteIndex: Sendable {
    /// Roots of one host's routes in both trees.
    private struct Roots: Sendable {
        var exact = 0
        var folded = 0
    }

    /// Roots of each host's routes; node 0 is that of the routes for any host.
    private let hosts: [String: Roots]
    private let exact: RouteTree
    /// The same routes with small letters in their paths.
    private let folded: RouteTree
    private let outcomes: RouteOutcomes

    /// Creates the index of `routes`, with `fallback` for requests that match none.
    init(_ routes: [Router.Route], fallback: String?) {
        var (exact, folded) = (RouteTree(), RouteTree())
        var outcomes = RouteOutcomes(fallback: fallback)
        var hosts: [String: Roots] = [:]
        let hasCapitals = routes.contains { $0.path?.utf8.contains(where: \.isCapital) ?? false }
        for (number, route) in routes.enumerated() {
            var roots = Roots()
            if let host = route.host {
                let known = hosts[host]
                roots = known ?? Roots(exact: exact.addRoot(), folded: hasCapitals ? folded.addRoot() : 0)
                if known == nil { hosts[host] = roots }
            }
            let path = Array((route.path ?? "").utf8)
            exact.add(number, route, at: roots.exact, path: path)
            if hasCapitals { folded.add(number, route, at: roots.folded, path: path.map(\.lowercased)) }
            outcomes.add(number, route, at: roots.exact)
        }
        self.hosts = hosts
        self.exact = exact
        self.folded = hasCapitals ? folded : exact
        self.hasCapitals = hasCapitals
        self.outcomes = outcomes
    }

    /// True if a route's path contains a capital letter.
    let hasCapitals: Bool

    /// Returns the number of the first route that matches.
    func first(host: String, path: Span<UInt8>, method: String, ignoringCase: Bool = false) -> Int? {
        let tree = ignoringCase ? folded : exact
        var number = tree.first(from: 0, path, method, lowercasing: ignoringCase)
        if let roots = hosts.isEmpty ? nil : hosts[host] {
            let root = ignoringCase && hasCapitals ? roots.folded : roots.exact
            number = min(number, tree.first(from: root, path, method, lowercasing: ignoringCase))
        }
        return number == .max ? nil : number
    }

    /// Returns true if, for that host and method, two paths can match routes that differ.
    func dependsOnPath(host: String, method: String) -> Bool {
        outcomes.differ(at: hosts[host]?.exact, method: method)
    }

    /// Returns true if two outcomes have the same upstream and users; `nil` means no route.
    func areEqual(_ one: Int?, _ two: Int?) -> Bool { outcomes.kind(of: one) == outcomes.kind(of: two) }

    /// The greatest number of slots that the look-up of one segment examines. For tests.
    var longestSearch: Int { exact.longestSearch }
}

/// Routes by the segments of their path, for each host in a tree of its own.
private struct RouteTree: Sendable {
    /// Routes of one path.
    private struct Leaf {
        /// Number of the first route for any method; `max` without one.
        var any = Int.max
        /// Number of the first route for each method that routes name.
        var byMethod: [String: Int] = [:]

        mutating func add(_ number: Int, _ methods: Set<String>?) {
            guard let methods else {
                any = min(any, number)
                return
            }
            for method in methods { byMethod[method] = min(byMethod[method] ?? .max, number) }
        }

        func first(_ method: String) -> Int {
            byMethod.isEmpty ? any : min(any, byMethod[method] ?? .max)
        }
    }

    private var tree = SegmentTree()
    /// Routes whose path ends at a node: the path itself and all below it.
    private var whole = [Leaf()]
    /// Routes whose path ends with the slash after a node: all below it.
    private var below = [Leaf()]

    var longestSearch: Int { tree.longestSearch }

    mutating func addRoot() -> Int {
        let root = tree.addRoot()
        addLeaves()
        return root
    }

    /// Adds a route; an empty path is any.
    mutating func add(_ number: Int, _ route: Router.Route, at root: Int, path: [UInt8]) {
        guard !path.isEmpty else { return whole[root].add(number, route.methods) }
        let isBelow = path.last == .slash
        var node = root
        for segment in path.dropLast(isBelow ? 1 : 0).split(separator: .slash, omittingEmptySubsequences: false) {
            let bytes = Array(segment)
            node = tree.add(bytes.span, below: node)
        }
        addLeaves()
        if isBelow { below[node].add(number, route.methods) } else { whole[node].add(number, route.methods) }
    }

    /// Returns the smallest number of a route that takes `path`; `max` without one.
    ///
    /// Compared by bytes and whole segments: `/a` includes `/a` and `/a/b`, not `/ab`.
    func first(from root: Int, _ path: Span<UInt8>, _ method: String, lowercasing: Bool) -> Int {
        var (node, start, number) = (root, 0, whole[root].first(method))
        while true {
            var end = start
            while end < path.count, path[end] != .slash { end += 1 }
            guard let child = tree.child(of: node, for: path.extracting(start..<end), lowercasing: lowercasing) else {
                return number
            }
            node = child
            number = min(number, whole[node].first(method))
            guard end < path.count else { return number }
            number = min(number, below[node].first(method))
            start = end + 1
        }
    }

    private mutating func addLeaves() {
        while whole.count < tree.count {
            whole.append(Leaf())
            below.append(Leaf())
        }
    }
}

/// The outcomes that requests of one host and method can have, whatever their path.
private struct RouteOutcomes: Sendable {
    private struct Outcome: Hashable {
        let upstream: String?
        let users: Set<UInt32>?
    }

    private struct Place: Hashable {
        let root: Int
        let method: String?
    }

    /// The routes of one host, and of one method or for any, in order.
    private struct Series {
        let first: Int
        let kind: Int
        /// First route whose outcome is not that of `first`; `max` without one.
        var differsAt = Int.max
        /// First route for any path; `max` without one.
        var anyPath = Int.max
    }

    private var kinds: [Outcome: Int]
    private var kindOfRoute: [Int] = []
    private var series: [Place: Series] = [:]

    init(fallback: String?) { kinds = [Outcome(upstream: fallback, users: nil): 0] }

    /// Adds the next route.
    mutating func add(_ number: Int, _ route: Router.Route, at root: Int) {
        let outcome = Outcome(upstream: route.upstream, users: route.users)
        let kind = kinds[outcome] ?? kinds.count
        kinds[outcome] = kind
        kindOfRoute.append(kind)
        for method in route.methods.map({ $0.map(Optional.some) }) ?? [nil] {
            var own = series[Place(root: root, method: method)] ?? Series(first: number, kind: kind)
            if own.kind != kind { own.differsAt = min(own.differsAt, number) }
            if route.path == nil { own.anyPath = min(own.anyPath, number) }
            series[Place(root: root, method: method)] = own
        }
    }

    /// Returns the number of an outcome; `nil` is that without a route.
    func kind(of route: Int?) -> Int { route.map { kindOfRoute[$0] } ?? 0 }

    /// Returns true if not all outcomes at a host's root and for any host are one.
    ///
    /// No route after the first for any path counts.
    func differ(at host: Int?, method: String) -> Bool {
        let all = (
            series[Place(root: 0, method: nil)], series[Place(root: 0, method: method)],
            host.flatMap { series[Place(root: $0, method: nil)] },
            host.flatMap { series[Place(root: $0, method: method)] }
        )
        let last = min(
            all.0?.anyPath ?? .max, all.1?.anyPath ?? .max, all.2?.anyPath ?? .max, all.3?.anyPath ?? .max)
        var kind = last == .max ? 0 : nil as Int?
        func isOther(_ own: Series?) -> Bool {
            guard let own, own.first <= last else { return false }
            if own.differsAt <= last || own.kind != kind ?? own.kind { return true }
            kind = own.kind
            return false
        }
        return isOther(all.0) || isOther(all.1) || isOther(all.2) || isOther(all.3)
    }
}
