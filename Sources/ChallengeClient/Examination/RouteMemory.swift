// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Which sessions a route uses where that is not the same everywhere: because of location patterns, or because a
/// MobileFirst resource named a scope (its own clients remember that per method and address, too).
///
/// Asked at every request, hence by fingerprint: nothing is allocated. Two routes with one fingerprint would take turns.
struct RouteMemory {
    /// As in MobileFirst's Android client, times ten: a daemon serves many programs.
    private static let most = 1_000
    private var routes: [Int: (key: RouteKey, sessions: RouteSessions)] = [:]
    private var order: [Int] = []

    var isEmpty: Bool { routes.isEmpty }

    /// What is remembered for a request; `target` may hold a query.
    func route(method: RequestMethod, target: borrowing ByteQueue) -> RouteSessions? {
        target.withSpan { target in
            guard let known = routes[RouteKey.fingerprint(method, target)], known.key.matches(method, target) else {
                return nil
            }
            return known.sessions
        }
    }

    /// A route with the same session keys, so that many paths share one snapshot.
    func equal(to slots: [RouteSessions.Slot]) -> RouteSessions? {
        routes.values.first { $0.sessions.slots.map(\.key) == slots.map(\.key) }?.sessions
    }

    func forEach(_ body: (RouteSessions) -> Void) {
        for known in routes.values { body(known.sessions) }
    }

    mutating func remember(_ route: RouteSessions, for key: RouteKey) {
        let fingerprint = key.fingerprint
        if routes.updateValue((key, route), forKey: fingerprint) == nil { order.append(fingerprint) }
        guard order.count > Self.most else { return }
        // The oldest half goes at once, so that this costs little on average.
        for old in order.prefix(Self.most / 2) { routes[old] = nil }
        order.removeFirst(Self.most / 2)
    }
}
