// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Numbers of location patterns, found part by part in the order of precedence: host, port, path, user info.
struct LocationTree: Sendable {
    /// The values of a host or path, and of everything below it.
    private struct Reach<Value: Sendable>: Sendable {
        var exact: Value?
        var below: Value?
    }

    private typealias Users = [LocationPattern.UserInfo: Int]
    private typealias Paths = PartTree<Reach<Users>>
    private typealias Ports = [LocationPattern.Port: Paths]

    /// By the labels of the host, the last one first.
    private var hosts = PartTree<Reach<Ports>>(empty: Reach())

    /// Adds the number of a pattern that has none.
    mutating func insert(_ number: Int, at pattern: LocationPattern) { set(number, at: pattern) }

    /// Removes the number of a pattern.
    mutating func remove(at pattern: LocationPattern) { set(nil, at: pattern) }

    /// Returns the number of the most specific pattern that covers `location`.
    func first(covering location: Location) -> Int? {
        var found: Int?
        forEach(covering: location) { number in
            found = number
            return false
        }
        return found
    }

    /// Calls `body` with each pattern that covers `location`, the most specific first, until it returns false.
    func forEach(covering location: Location, _ body: (Int) -> Bool) {
        let labels = hosts.nodes(along: location.labels.reversed())
        for (depth, node) in labels.enumerated().reversed() {
            let isEnd = depth == location.labels.count
            guard let ports = isEnd ? hosts[node].exact : hosts[node].below else { continue }
            for port in [.exact(location.port), .any] as [LocationPattern.Port] {
                if let paths = ports[port], visit(paths, location, body) { return }
            }
        }
    }

    /// Returns true if `body` returned false.
    private func visit(_ paths: Paths, _ location: Location, _ body: (Int) -> Bool) -> Bool {
        let nodes = paths.nodes(along: location.segments)
        func visitUsers(_ users: Users?) -> Bool {
            guard let users else { return false }
            for user in LocationPattern.UserInfo.covering(location.userInfo) {
                if let number = users[user], !body(number) { return true }
            }
            return false
        }
        if nodes.count == location.segments.count + 1, let end = nodes.last, visitUsers(paths[end].exact) {
            return true
        }
        // No pattern `/*` covers the empty path.
        guard !location.segments.isEmpty else { return false }
        for node in nodes.reversed() where visitUsers(paths[node].below) { return true }
        return false
    }

    private mutating func set(_ number: Int?, at pattern: LocationPattern) {
        func setUser(_ users: inout Users?) {
            var known = users ?? [:]
            users = nil
            known[pattern.userInfo] = number
            users = known
        }
        func setPath(_ paths: inout Paths?) {
            var known = paths ?? Paths(empty: Reach())
            paths = nil
            switch pattern.path {
            case .exact(let segments):
                known.update(segments) { setUser(&$0.exact) }
            case .below(let segments):
                known.update(segments) { setUser(&$0.below) }
            }
            paths = known
        }
        func setPort(_ ports: inout Ports?) {
            var known = ports ?? [:]
            ports = nil
            setPath(&known[pattern.port])
            ports = known
        }
        switch pattern.host {
        case .exact(let labels): hosts.update(labels.reversed()) { setPort(&$0.exact) }
        case .below(let labels): hosts.update(labels.reversed()) { setPort(&$0.below) }
        }
    }
}

extension LocationPattern.UserInfo {
    /// Returns the forms that cover a location's user info, the most specific first.
    fileprivate static func covering(_ info: Location.UserInfo?) -> [Self] {
        guard let info else { return [.none] }
        return info.password == nil ? [.exact(info), .any] : [.exact(info), .anyPassword(user: info.user), .any]
    }
}
