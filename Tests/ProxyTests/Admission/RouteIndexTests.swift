// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import Proxy

@Suite("The index of routes, compared with a plain scan")
struct RouteIndexTests {
    @Test("10,000 random configurations decide as a scan of the routes in their order does")
    func plainScan() {
        var examples = RouteExamples(seed: 46)
        var outcomes: [String: Int] = [:]
        for _ in 0..<10_000 {
            let (routes, fallback) = (examples.routes(), examples.upstream())
            let (router, plain) = (Router(routes: routes, fallback: fallback), PlainScan(routes, fallback))
            for _ in 0..<3 {
                let (host, path, method) = (examples.host() ?? "other", examples.path(), examples.method())
                let user = examples.user()
                let decision = router.decide(host: host, path: path, method: method, user: user)
                #expect(
                    decision == plain.decide(host: host, path: path, method: method, user: user),
                    "\(method) \(host)\(path) by \(user.map(String.init) ?? "nobody"), \(fallback ?? "-"): \(routes)")
                outcomes["\(decision)".prefix { $0 != "(" }.description, default: 0] += 1
            }
        }
        #expect(outcomes.count == 4 && outcomes.values.allSatisfy { $0 > 300 }, "\(outcomes)")
    }

    @Test("the look-up of a segment examines few slots, whatever the number of routes")
    func constant() {
        for count in [10, 10_000] {
            let routes = (0..<count).map { number in
                Router.Route(
                    host: number % 2 == 0 ? nil : "host-\(number).example", path: "/app-\(number)/v1/", upstream: "u")
            }
            #expect(RouteIndex(routes, fallback: nil).longestSearch <= 24)
        }
    }

    @Test("of 10,000 routes the last is found, by path and by host")
    func last() {
        let paths = (0..<10_000).map { Router.Route(path: "/app-\($0)", upstream: "u\($0)") }
        let byPath = Router(routes: paths, fallback: nil)
        #expect(
            byPath.decide(host: "a", path: "/app-9999/x", method: "GET", user: nil)
                == .found(.init(upstream: "u9999", route: 9999)))
        #expect(byPath.decide(host: "a", path: "/app-10000/x", method: "GET", user: nil) == .none)
        let hosts = (0..<10_000).map { Router.Route(host: "h\($0)", upstream: "u\($0)") }
        #expect(
            Router(routes: hosts, fallback: nil).decide(host: "H9999.", path: "/", method: "GET", user: nil)
                == .found(.init(upstream: "u9999", route: 9999)))
    }

    @Test("a tree of segments finds what was added, in any case if asked, and nothing else")
    func segments() {
        var tree = SegmentTree()
        let children = (0..<1000).map { tree.add(Array("segment-\($0)".utf8).span, below: $0 % 3) }
        #expect(Set(children).count == 1000)
        for number in 0..<1000 {
            let (same, capitals) = (Array("segment-\(number)".utf8), Array("Segment-\(number)".utf8))
            #expect(tree.child(of: number % 3, for: same.span) == children[number])
            #expect(tree.child(of: number % 3, for: capitals.span) == nil)
            #expect(tree.child(of: number % 3, for: capitals.span, lowercasing: true) == children[number])
            #expect(tree.child(of: (number + 1) % 3, for: same.span) == nil)
        }
        #expect(tree.child(of: 0, for: [UInt8]().span) == nil)
    }
}

/// Decides as `Router` does, by a scan of the routes.
private struct PlainScan {
    private let routes: [Router.Route]
    private let fallback: String?
    private let hasCapitals: Bool

    init(_ routes: [Router.Route], _ fallback: String?) {
        (self.routes, self.fallback) = (routes, fallback)
        hasCapitals = routes.contains { $0.path?.utf8.contains { $0 &- 0x41 < 26 } ?? false }
    }

    func decide(host: String, path: String, method: String, user: UInt32?) -> Router.Decision {
        let host = HostPolicy.canonical(host)
        let bytes = Array((path.isEmpty ? "/" : path).utf8)
        let number = match(host, bytes, method)
        guard let upstream = number.map({ routes[$0].upstream }) ?? fallback else { return .none }
        if let number, let users = routes[number].users, !(user.map(users.contains) ?? false) {
            return .notAllowed(route: number)
        }
        guard isRead(bytes, number, host, method) else { return .ambiguous }
        return .found(.init(upstream: upstream, stripped: number.map { stripped(routes[$0]) } ?? 0, route: number))
    }

    private func match(_ host: String, _ path: [UInt8], _ method: String, ignoringCase: Bool = false) -> Int? {
        routes.firstIndex { route in
            if let wanted = route.host, wanted != host { return false }
            if let methods = route.methods, !methods.contains(method) { return false }
            return takes(route, path, ignoringCase)
        }
    }

    private func takes(_ route: Router.Route, _ path: [UInt8], _ ignoringCase: Bool) -> Bool {
        guard let prefix = route.path.map({ Array($0.utf8) }) else { return true }
        guard path.count >= prefix.count else { return false }
        for (own, other) in zip(prefix, path) where own != other {
            guard ignoringCase, small(own) == small(other) else { return false }
        }
        return prefix.isEmpty || prefix.last == .slash || path.count == prefix.count || path[prefix.count] == .slash
    }

    private func small(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    private func isRead(_ path: [UInt8], _ found: Int?, _ host: String, _ method: String) -> Bool {
        let isPlain = NormalizedPaths.isPlain(path.span)
        let ignoresCase = hasCapitals || path.contains { $0 &- 0x41 < 26 }
        guard !isPlain || ignoresCase, dependsOnPath(host, method) else { return true }
        func isSame(_ reading: [UInt8]) -> Bool {
            areEqual(match(host, reading, method), found)
                && areEqual(match(host, reading, method, ignoringCase: true), found)
        }
        return isPlain ? isSame(path) : NormalizedPaths.allSatisfy(path, isSame)
    }

    private func dependsOnPath(_ host: String, _ method: String) -> Bool {
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

    private func areEqual(_ one: Int?, _ two: Int?) -> Bool {
        if one == two { return true }
        return (one.map { routes[$0].upstream } ?? fallback) == (two.map { routes[$0].upstream } ?? fallback)
            && one.flatMap { routes[$0].users } == two.flatMap { routes[$0].users }
    }

    private func stripped(_ route: Router.Route) -> Int {
        guard route.stripsPrefix, let path = route.path else { return 0 }
        return path.utf8.last == .slash ? path.utf8.count - 1 : path.utf8.count
    }
}

/// Random routes and requests of few words, so that they often match.
private struct RouteExamples {
    private var random: SplitMix

    init(seed: UInt64) { random = SplitMix(state: seed) }

    mutating func routes() -> [Router.Route] {
        (0..<Int.random(in: 1...8, using: &random)).map { _ in
            let methods = pick([nil, nil, nil, ["GET"], ["POST"], ["GET", "POST"], ["PURGE"]] as [Set<String>?])
            let users = pick([nil, nil, nil, nil, [7], [8]] as [Set<UInt32>?])
            return Router.Route(
                host: host(), path: prefix(), methods: methods, users: users, upstream: upstream() ?? "c",
                stripsPrefix: pick([true, false]))
        }
    }

    mutating func host() -> String? { pick([nil, nil, "a.example", "b.example", "[::1]"]) }
    mutating func method() -> String { pick(["GET", "GET", "POST", "get", "DELETE", "PURGE"]) }
    mutating func upstream() -> String? { pick([nil, "a", "a", "b"]) }
    mutating func user() -> UInt32? { pick([nil, 7, 7, 8]) }

    mutating func path() -> String {
        pick(["", "/", "", "", "*"])
            + joined(pick([0, 1, 1, 2, 3]), ["x", "y", "X", "xy", "%78", "..", ".", "", "x;v=1", "a%2Fb"])
    }

    private mutating func prefix() -> String? {
        if pick([true, false, false, false]) { return nil }
        return joined(pick([0, 1, 1, 2]), ["x", "y", "xy", "X", ""]) + pick(["", "/"])
    }

    private mutating func joined(_ count: Int, _ words: [String]) -> String {
        (0..<count).map { _ in "/" + pick(words) }.joined()
    }

    private mutating func pick<Element>(_ choices: [Element]) -> Element {
        choices[Int.random(in: choices.indices, using: &random)]
    }
}
