// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// The logins at each route of one upstream, as known to one worker.
final class RouteTable {
    private let plan: UpstreamPlan
    /// The default route, of requests without an entry in the cache.
    private let uniform: RouteSessions
    private var cache = RouteCache()
    /// The version of `LearnedScopes` that was copied last.
    private var learnedVersion: UInt64 = 0

    /// Creates the routes of `plan`.
    init(plan: UpstreamPlan) {
        self.plan = plan
        uniform = RouteSessions(slots: plan.logins.unconditional.map { .init(login: $0, scope: $0.defaultScope) })
    }

    /// Returns the route of a request, with its logins.
    func route(method: RequestMethod, target: borrowing ByteQueue) -> RouteSessions {
        if plan.logins.isEmpty { return uniform }
        if plan.learned.version != learnedVersion { copyLearned() }
        if !cache.isEmpty, let known = cache.route(method: method, target: target) { return known }
        guard !plan.logins.isUniform else { return uniform }
        let key = RouteKey(method: method, target: target)
        return cache.addRoute(slots(at: key), for: key)
    }

    /// Refreshes every snapshot from the attempt gate.
    func refresh(from gate: SharedAttemptGate, now: Int64) {
        uniform.refresh(from: gate, now: now)
        cache.forEach { $0.refresh(from: gate, now: now) }
    }

    /// Records another scope for the session of `slot` at a route, for every worker.
    func learn(_ scope: Scope, in slot: Int, of route: RouteSessions, for key: RouteKey) -> RouteSessions {
        var slots = route.slots
        slots[slot] = .init(login: slots[slot].login, scope: scope)
        plan.learned.learn(LearnedScopes.Entry(slot: slot, scope: scope), for: key)
        return cache.addRoute(slots, for: key)
    }

    /// Returns the logins configured for a route, with the scopes of the configuration.
    private func slots(at key: RouteKey) -> [RouteSessions.Slot] {
        if plan.logins.isUniform { return uniform.slots }
        let url = WebURL(origin: plan.base.origin, path: key.pathText)
        let method = key.method.name
        return plan.logins.matching(Location(url)).map { login in
            .init(login: login, scope: login.scope(method: method, path: url.path))
        }
    }

    /// Copies the scopes recorded by any worker for this upstream.
    private func copyLearned() {
        learnedVersion = plan.learned.version
        for (key, scopes) in plan.learned.all {
            var slots = slots(at: key)
            for (slot, scope) in scopes where slots.indices.contains(slot) {
                slots[slot] = .init(login: slots[slot].login, scope: scope)
            }
            _ = cache.addRoute(slots, for: key)
        }
    }
}

/// A bounded cache of routes whose sessions differ from the upstream's default.
///
/// A route differs because of location patterns, or because a MobileFirst resource named a scope, which its own clients
/// also cache per method and URL. Looked up for every request by fingerprint, without allocation. Two routes with one
/// fingerprint replace each other.
struct RouteCache {
    /// Ten times the limit of MobileFirst's Android client, as a daemon serves many programs.
    private static let most = 1_000
    private var routes: [Int: Route] = [:]
    private var order: [Int] = []
    /// Snapshots by the keys of their sessions, so that many paths share one.
    private var shared: [[SessionKey]: Snapshot] = [:]

    private struct Route {
        let key: RouteKey
        let sessions: RouteSessions
        let sessionKeys: [SessionKey]
    }

    private struct Snapshot {
        let sessions: RouteSessions
        /// Number of routes that have it.
        var uses = 0
    }

    var isEmpty: Bool { routes.isEmpty }

    /// Returns the cached route of a request; `target` may hold a query.
    func route(method: RequestMethod, target: borrowing ByteQueue) -> RouteSessions? {
        target.withSpan { target in
            guard let known = routes[RouteKey.fingerprint(method, target)], known.key.matches(method, target) else {
                return nil
            }
            return known.sessions
        }
    }

    /// Calls `body` once with each snapshot.
    func forEach(_ body: (RouteSessions) -> Void) {
        for known in shared.values { body(known.sessions) }
    }

    /// Adds a route with these slots. Returns its snapshot, which is shared by all routes with the same session keys.
    mutating func addRoute(_ slots: [RouteSessions.Slot], for key: RouteKey) -> RouteSessions {
        let sessionKeys = slots.map(\.key)
        let sessions = shared[sessionKeys]?.sessions ?? RouteSessions(slots: slots)
        shared[sessionKeys, default: Snapshot(sessions: sessions)].uses += 1
        let route = Route(key: key, sessions: sessions, sessionKeys: sessionKeys)
        let fingerprint = key.fingerprint
        if let old = routes.updateValue(route, forKey: fingerprint) {
            release(old)
        } else {
            order.append(fingerprint)
        }
        guard order.count > Self.most else { return sessions }
        // Half at once, so that eviction costs little on average.
        for old in order.prefix(Self.most / 2) {
            if let route = routes.removeValue(forKey: old) { release(route) }
        }
        order.removeFirst(Self.most / 2)
        return sessions
    }

    private mutating func release(_ route: Route) {
        guard let snapshot = shared[route.sessionKeys] else { return }
        if snapshot.uses > 1 {
            shared[route.sessionKeys]?.uses -= 1
        } else {
            shared[route.sessionKeys] = nil
        }
    }
}
