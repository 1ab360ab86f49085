// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// Method and path of a request, without its query: what scopes and refusals are remembered for.
struct RouteKey: Hashable, Sendable {
    let method: RequestMethod
    let path: String

    /// `target` may hold a query.
    init(method: RequestMethod, target: borrowing ByteQueue) {
        self.method = method
        path = target.withSpan { bytes in
            var path: [UInt8] = []
            for index in bytes.indices {
                let byte = bytes[index]
                if byte == UInt8(ascii: "?") { break }
                path.append(byte)
            }
            return String(decoding: path, as: UTF8.self)
        }
    }
}

/// Which sessions a route uses where that is not the same everywhere: because of location patterns, or because a
/// MobileFirst resource named a scope (its own clients remember that per method and address, too).
struct RouteMemory {
    /// As in MobileFirst's Android client, times ten: a daemon serves many programs.
    private static let most = 1_000
    private var routes: [RouteKey: RouteSessions] = [:]
    private var order: [RouteKey] = []

    var isEmpty: Bool { routes.isEmpty }

    func route(for key: RouteKey) -> RouteSessions? { routes[key] }

    /// A route with the same session keys, so that many paths share one snapshot.
    func equal(to slots: [RouteSessions.Slot]) -> RouteSessions? {
        routes.values.first { $0.slots.map(\.key) == slots.map(\.key) }
    }

    mutating func remember(_ route: RouteSessions, for key: RouteKey) {
        if routes.updateValue(route, forKey: key) == nil { order.append(key) }
        guard order.count > Self.most else { return }
        // The oldest half goes at once, so that this costs little on average.
        for old in order.prefix(Self.most / 2) { routes[old] = nil }
        order.removeFirst(Self.most / 2)
    }
}

/// A session's use that was refused at a route.
package struct RefusedUse: Hashable {
    let route: RouteKey
    let slot: Int
    let generation: UInt64
}

/// Refusals of sessions just won: for 30 s they go to the caller as they came, without another login (CONTRIBUTING, rule 4).
struct RefusalMemory {
    private static let span = Duration.seconds(30)
    private static let most = 1_000
    private var until: [RefusedUse: LoopInstant] = [:]

    func contains(_ refusal: RefusedUse, now: LoopInstant) -> Bool {
        until[refusal].map { now < $0 } ?? false
    }

    mutating func insert(_ refusal: RefusedUse, now: LoopInstant) {
        if until.count >= Self.most { until = until.filter { now < $0.value } }
        if until.count >= Self.most { until.removeAll() }
        until[refusal] = now + Self.span
    }
}
