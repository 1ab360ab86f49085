// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// The logins that stand at each route of one upstream, as one worker knows them.
final class RouteTable {
    private let plan: UpstreamPlan
    /// The route of whatever has none of its own.
    private let uniform: RouteSessions
    private var memory = RouteMemory()
    /// The version of the lessons that were taken over.
    private var lessons: UInt64 = 0

    /// The routes of `plan`.
    init(plan: UpstreamPlan) {
        self.plan = plan
        uniform = RouteSessions(slots: plan.logins.standingEverywhere.map { .init(login: $0, scope: $0.defaultScope) })
    }

    /// The route of a request, with its logins.
    func route(method: RequestMethod, target: borrowing ByteQueue) -> RouteSessions {
        if plan.logins.isEmpty { return uniform }
        if plan.learned.version != lessons { takeLessons() }
        if !memory.isEmpty, let known = memory.route(method: method, target: target) { return known }
        guard !plan.logins.isUniform else { return uniform }
        let key = RouteKey(method: method, target: target)
        return remember(slots(at: key), for: key)
    }

    /// Has every snapshot be one of what is held now.
    func refresh(from gate: SharedAttemptGate, now: Int64) {
        uniform.refresh(from: gate, now: now)
        memory.forEach { $0.refresh(from: gate, now: now) }
    }

    /// The session of `slot` at the route of `key` has another scope from now on, for every worker.
    func learn(_ scope: Scope, in slot: Int, of route: RouteSessions, for key: RouteKey) -> RouteSessions {
        var slots = route.slots
        slots[slot] = .init(login: slots[slot].login, scope: scope)
        plan.learned.learn(LearnedScopes.Lesson(slot: slot, scope: scope), for: key)
        return remember(slots, for: key)
    }

    private func remember(_ slots: [RouteSessions.Slot], for key: RouteKey) -> RouteSessions {
        let route = memory.equal(to: slots) ?? RouteSessions(slots: slots)
        memory.remember(route, for: key)
        return route
    }

    /// The logins that stand at a route, with the scopes of the configuration.
    private func slots(at key: RouteKey) -> [RouteSessions.Slot] {
        if plan.logins.isUniform { return uniform.slots }
        let url = WebURL(origin: plan.base.origin, path: key.pathText)
        let method = key.method.name
        return plan.logins.standing(at: Location(url)).map { login in
            .init(login: login, scope: login.scope(method: method, path: url.path))
        }
    }

    /// Takes over what any worker has learned of this upstream's scopes.
    private func takeLessons() {
        lessons = plan.learned.version
        for (key, lesson) in plan.learned.all {
            var slots = slots(at: key)
            guard slots.indices.contains(lesson.slot) else { continue }
            slots[lesson.slot] = .init(login: slots[lesson.slot].login, scope: lesson.scope)
            _ = remember(slots, for: key)
        }
    }
}
