// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Addresses, to find those below which a location pattern covers something.
package struct LocationBases {
    private let bases: [Location]
    /// Positions by the labels of the host, the last one first, and by the segments of the path.
    private var hosts = PartTree<PartTree<[Int]>?>(empty: nil)

    /// Creates an index of `bases`.
    package init(_ bases: [Location]) {
        self.bases = bases
        for (position, base) in bases.enumerated() {
            hosts.update(base.labels.reversed()) { paths in
                var known = paths ?? PartTree(empty: [])
                paths = nil
                known.update(base.segments) { $0.append(position) }
                paths = known
            }
        }
    }

    /// Returns the positions of the bases below which `pattern` covers something, in order.
    package func covered(by pattern: LocationPattern) -> [Int] {
        var found: [Int] = []
        _ = search(pattern) { position in
            found.append(position)
            return true
        }
        return found.sorted()
    }

    /// Returns whether `pattern` covers something below any of the bases.
    package func areCovered(by pattern: LocationPattern) -> Bool { !search(pattern) { _ in false } }

    /// Calls `body` with each position until it returns false. Returns whether it never did.
    private func search(_ pattern: LocationPattern, _ body: (Int) -> Bool) -> Bool {
        func visitPaths(_ paths: PartTree<[Int]>?) -> Bool {
            guard let paths else { return true }
            let (parts, reachesDown) =
                switch pattern.path {
                case .exact(let segments): (segments, false)
                case .below(let segments): (segments, true)
                }
            let nodes = paths.nodes(along: parts)
            func visitPositions(_ positions: [Int]) -> Bool {
                positions.allSatisfy { !pattern.coversSomething(below: bases[$0]) || body($0) }
            }
            guard nodes.allSatisfy({ visitPositions(paths[$0]) }) else { return false }
            guard reachesDown, nodes.count == parts.count + 1, let last = nodes.last else { return true }
            return paths.forEach(below: last, visitPositions)
        }
        switch pattern.host {
        case .exact(let labels):
            let nodes = hosts.nodes(along: labels.reversed())
            guard nodes.count == labels.count + 1, let last = nodes.last else { return true }
            return visitPaths(hosts[last])
        case .below(let labels):
            let nodes = hosts.nodes(along: labels.reversed())
            guard nodes.count == labels.count + 1, let last = nodes.last else { return true }
            return hosts.forEach(below: last, visitPaths)
        }
    }
}
