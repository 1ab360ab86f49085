// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import TestSupport
import Testing

@testable import Settings

@Suite("Routes that earlier ones hide")
struct HiddenRouteTests {
    @Test("check names the first route that hides another, as a comparison with all earlier ones does")
    func plainScan() throws {
        var examples = Examples(seed: 9)
        var hidden = 0
        for _ in 0..<400 {
            let lines = (0..<8).map { _ in examples.route() }
            let text = """
                listeners: [{ address: "127.0.0.1:8080", routes: [\(lines.joined(separator: ", "))] }]
                upstreams: { u: "https://u.example/" }
                """
            let (_, problems) = Settings.parse(Array(text.utf8), file: "f", environment: [:])
            let told = problems.map { "\($0)" }.filter { $0.contains("is never used") }
            let routes = examples.made
            examples.made = []
            let expected = routes.indices.compactMap { later in
                routes[..<later].firstIndex { $0.hides(routes[later]) }
                    .map { "routes[\(later)]: is never used: routes[\($0)] matches" }
            }
            #expect(told.count == expected.count, "\(text)\n\(told)\n\(expected)")
            for (one, other) in zip(told, expected) { #expect(one.contains(other), "\(text)") }
            hidden += expected.count
        }
        #expect(hidden > 300)
    }

    private struct Route {
        let host: String?
        let path: String?
        let methods: [String]?

        func hides(_ later: Route) -> Bool {
            guard host == nil || host == later.host else { return false }
            if let methods {
                guard let others = later.methods, others.allSatisfy(methods.contains) else { return false }
            }
            guard let path else { return true }
            guard let other = later.path, other.utf8.starts(with: path.utf8) else { return false }
            return path.hasSuffix("/") || other.utf8.count == path.utf8.count
                || other.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
        }
    }

    private struct Examples {
        private var random: SplitMix
        var made: [Route] = []

        init(seed: UInt64) { random = SplitMix(state: seed) }

        mutating func route() -> String {
            let route = Route(
                host: pick([nil, nil, "a.example", "b.example"]),
                path: pick([nil, "/", "/x", "/x/", "/x/y", "/x/y/", "/xy", "/z//", "/z/"]),
                methods: pick([nil, nil, ["GET"], ["POST"], ["GET", "POST"], ["PUT", "GET", "POST"]]))
            made.append(route)
            let parts = [
                "upstream: u", route.host.map { "host: \($0)" }, route.path.map { "path: \($0)" },
                route.methods.map { "methods: [\($0.joined(separator: ", "))]" },
            ]
            return "{ \(parts.compactMap(\.self).joined(separator: ", ")) }"
        }

        private mutating func pick<Element>(_ choices: [Element]) -> Element {
            choices[Int.random(in: choices.indices, using: &random)]
        }
    }
}
