// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient

@Suite("A route's sessions, as one worker sees them")
struct RouteSessionsTests {
    private let gate = SharedAttemptGate(now: { 0 })
    private let ticket = ExchangeTicket(worker: 0, exchange: 1)

    private func logIn(_ key: SessionKey, _ value: String, expiresAt: Int64? = nil, now: Int64 = 0) {
        let old = gate.held(key)?.generation
        _ = gate.change { $0.requestSession(key, rejected: old, waiter: ticket, now: now) }
        let field = InjectedField(name: .authorization, value: Secret(value))
        _ = gate.change {
            $0.sessions.finish(
                key, with: .success(Session(fields: [field], expiresAt: expiresAt)), now: now, chance: 0)
        }
    }

    @Test("a route's snapshot is refreshed only after a change")
    func refresh() {
        let route = RouteSessions(slots: [.slot("a"), .slot("b")])
        route.refresh(from: gate, now: 0)
        #expect(route.generations == [0, 0])
        logIn(route.slots[1].key, "one")
        #expect(route.generations == [0, 0])
        route.refresh(from: gate, now: 0)
        #expect(route.generations == [0, 1])
        let fields = route.fields
        route.refresh(from: gate, now: 1)
        #expect(route.fields === fields)
        _ = gate.change { $0.sessions.drop { _ in true } }
        route.refresh(from: gate, now: 1)
        #expect(route.generations == [0, 0])
        #expect(route.fields === SessionFields.none)
    }

    @Test("an expired session leaves the snapshot without any other change")
    func expiry() {
        let route = RouteSessions(slots: [.slot("a")])
        logIn(route.slots[0].key, "one", expiresAt: 1000)
        route.refresh(from: gate, now: 999)
        #expect(route.generations == [1])
        route.refresh(from: gate, now: 1000)
        #expect(route.generations == [0])
    }

    @Test("the earliest renewal counts, and one that was taken care of pauses even when it fails")
    func renewal() {
        let route = RouteSessions(slots: [.slot("a"), .slot("b")])
        logIn(route.slots[0].key, "one", expiresAt: 100_000)
        logIn(route.slots[1].key, "two", expiresAt: 10_000)
        route.refresh(from: gate, now: 0)
        #expect((8000...8500).contains(route.renewAt))
        route.postponeRenewal(until: 9000)
        #expect(route.renewAt == 9000)
        _ = gate.change({ $0.sessions.beginRenewal(route.slots[1].key, now: 8000) })
        let failure = LoginFailure(.noCredential, challenge: "b", detail: "")
        _ = gate.change { $0.sessions.finish(route.slots[1].key, with: .failure(failure), now: 8000, chance: 0) }
        route.refresh(from: gate, now: 8001)
        #expect(route.renewAt == 9000)
        #expect(route.generations == [1, 2])
    }

    @Test("a slot's key is that of its login with the scope asked for")
    func scopes() {
        let slot = RouteSessions.Slot(login: .named("a"), scope: Scope(["pay", "see"]))
        #expect(slot.key.scope == "pay see")
        #expect(slot.key.challenge == "a")
    }
}

@Suite("The route cache, and the scopes that resources have named")
struct RouteCacheTests {
    private func key(_ target: String, _ method: RequestMethod = .get) -> RouteKey {
        RouteKey(method: method, target: ByteQueue(text: target))
    }

    @Test("a route is a method and a path, without the query")
    func keys() {
        #expect(key("/a?x=1") == key("/a?y"))
        #expect(key("/a") != key("/a/"))
        #expect(key("/a") != key("/a", .post))
        #expect(key("/%61") != key("/a"))
    }

    @Test("a thousand routes are cached; beyond, the oldest half is dropped")
    func bounded() {
        var cache = RouteCache()
        for number in 0...1000 { _ = cache.addRoute([.slot("a")], for: key("/\(number)")) }
        #expect(cache.route(method: .get, target: ByteQueue(text: "/0")) == nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/499")) == nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/500")) != nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/1000")) != nil)
        for _ in 0..<5000 { _ = cache.addRoute([.slot("a")], for: key("/1000")) }
        #expect(cache.route(method: .get, target: ByteQueue(text: "/500")) != nil)
    }

    @Test("routes with the same sessions share one snapshot")
    func shared() {
        var cache = RouteCache()
        let route = cache.addRoute([.slot("a"), .slot("b")], for: key("/x"))
        #expect(cache.addRoute([.slot("a"), .slot("b")], for: key("/y")) === route)
        #expect(cache.addRoute([.slot("b"), .slot("a")], for: key("/z")) !== route)
        #expect(cache.addRoute([.slot("a")], for: key("/a")) !== route)
    }

    @Test("a snapshot is refreshed once for all its routes, and released with the last of them")
    func snapshots() {
        var cache = RouteCache()
        weak var gone: RouteSessions?
        do {
            let route = cache.addRoute([.slot("a")], for: key("/0"))
            gone = route
            for number in 1...900 { _ = cache.addRoute([.slot("b")], for: key("/\(number)")) }
            _ = cache.addRoute([.slot("a")], for: key("/901"))
            var seen: [ObjectIdentifier] = []
            cache.forEach { seen.append(ObjectIdentifier($0)) }
            #expect(seen.count == 2 && Set(seen).count == 2)
        }
        _ = cache.addRoute([.slot("b")], for: key("/901"))
        #expect(gone != nil, "/0 has it")
        for number in 902...1001 { _ = cache.addRoute([.slot("b")], for: key("/\(number)")) }
        #expect(cache.route(method: .get, target: ByteQueue(text: "/0")) == nil)
        #expect(gone == nil)
    }

    @Test("a request looks only at slots without a session, and among these at what it needs")
    func openSlots() {
        let gate = SharedAttemptGate(now: { 0 })
        let route = RouteSessions(slots: (0..<100).map { .slot("s\($0)") })
        let sessions = CarriedSessions()
        func missing(_ timing: LoginTiming) -> Int? {
            route.missing(
                for: ExchangeRequest(method: .post, framing: .length(1)), at: ByteQueue(text: "/"), timing, by: gate,
                now: 0, carrying: sessions)
        }
        #expect(missing(.afterChallenge) == nil)
        #expect(missing(.beforeAnswer) == 0)
    }

    @Test("scopes named by resources are shared by all workers, and bounded")
    func lessons() {
        let learned = LearnedScopes()
        let before = learned.version
        learned.learn(.init(slot: 0, scope: Scope(["pay"])), for: key("/pay"))
        #expect(learned.version != before)
        #expect(learned.all[key("/pay")] == [0: Scope(["pay"])])
        for number in 0..<1000 { learned.learn(.init(slot: 0, scope: .empty), for: key("/\(number)")) }
        #expect(learned.all.count <= 1000)
        #expect(learned.all[key("/pay")] == nil)
        #expect(learned.all[key("/999")] != nil)
    }

    @Test("two logins of one route keep the scope that each of them learned, on every worker")
    func twoLogins() {
        var logins = Authenticators()
        for name in ["a", "b"] { logins.add(.named(name)) }
        let plan = UpstreamPlan(
            name: "bank", base: WebURL(origin: Origin(scheme: .https, host: "bank.example"), path: "/"), logins: logins)
        let (worker, other) = (RouteTable(plan: plan), RouteTable(plan: plan))
        let target = ByteQueue(text: "/pay")
        func scopes(_ table: RouteTable) -> [Scope] { table.route(method: .get, target: target).slots.map(\.scope) }
        let route = worker.route(method: .get, target: target)
        _ = worker.learn(Scope(["pay"]), in: 0, of: route, for: key("/pay"))
        _ = other.learn(Scope(["read"]), in: 1, of: other.route(method: .get, target: target), for: key("/pay"))
        for table in [worker, other, RouteTable(plan: plan)] {
            #expect(scopes(table) == [Scope(["pay"]), Scope(["read"])])
        }
        // A worker that has not seen the other scope yet does not remove it.
        _ = worker.learn(Scope(["send"]), in: 0, of: route, for: key("/pay"))
        for table in [worker, other] { #expect(scopes(table) == [Scope(["send"]), Scope(["read"])]) }
    }
}

extension Authenticator {
    /// Returns an authenticator whose login never runs.
    static func named(_ name: String) -> Authenticator {
        Authenticator(
            name: name, trigger: .mobileFirst, isAhead: false,
            key: SessionKey(origin: Origin(scheme: .https, host: "bank.example"), challenge: name, credential: name),
            credentials: [name]
        ) { _ in NoLogin() }
    }
}

extension RouteSessions.Slot {
    static func slot(_ name: String) -> RouteSessions.Slot { .init(login: .named(name), scope: .empty) }
}

private struct NoLogin: SessionLogin {
    func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
        throw LoginFailure(.failed, challenge: "", detail: "")
    }
}
