// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Challenges of a configuration, found by name and by place, so that each upstream looks at its own only.
package struct ChallengeIndex: Sendable {
    private struct Reach: Sendable {
        var exact: [Int] = []
        var below: [Int] = []
    }

    /// The challenges, in the order of the file.
    package let all: [ChallengeSettings]
    private var names: [String: [Int]] = [:]
    private var upstreams: [String: [Int]] = [:]
    /// Challenges with patterns, by the labels of the host, the last one first.
    private var hosts = PartTree(empty: Reach())

    /// Creates an index of the challenges of a file.
    package init(_ challenges: [ChallengeSettings]) {
        all = challenges
        for (position, challenge) in challenges.enumerated() {
            names[challenge.name, default: []].append(position)
            switch challenge.location {
            case .upstream(let name): upstreams[name, default: []].append(position)
            case .locations(let patterns):
                for pattern in patterns {
                    switch pattern.host {
                    case .exact(let labels): hosts.update(labels.reversed()) { $0.exact.append(position) }
                    case .below(let labels): hosts.update(labels.reversed()) { $0.below.append(position) }
                    }
                }
            }
        }
    }

    /// Returns the positions of the challenges that may be met at an upstream or at its MobileFirst server, in order.
    package func positions(at upstream: ProtectedUpstream) -> [Int] {
        var found = Set(upstreams[upstream.name] ?? [])
        found.formUnion(positions(at: upstream.url.origin))
        if let server = upstream.mobileFirst { found.formUnion(positions(at: server.api.origin)) }
        return found.sorted()
    }

    /// Returns the positions of the challenges with a pattern that may cover `origin`, in order.
    func positions(at origin: Origin) -> [Int] {
        let labels = Location(WebURL(origin: origin, path: "/")).labels
        var found: Set<Int> = []
        for (depth, node) in hosts.nodes(along: labels.reversed()).enumerated() {
            found.formUnion(depth == labels.count ? hosts[node].exact : hosts[node].below)
        }
        return found.sorted().filter { position in
            guard case .locations(let patterns) = all[position].location else { return false }
            return patterns.contains { $0.mayCover(origin) }
        }
    }

    /// Returns the positions of the challenges with one of these names, in order.
    func positions(named names: [String]) -> [Int] {
        Set(names.flatMap { self.names[$0] ?? [] }).sorted()
    }
}
