// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient

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
        let route = RouteSessions(slots: [.slot("a")])
        for number in 0...1000 { cache.addRoute(route, for: key("/\(number)")) }
        #expect(cache.route(method: .get, target: ByteQueue(text: "/0")) == nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/499")) == nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/500")) != nil)
        #expect(cache.route(method: .get, target: ByteQueue(text: "/1000")) != nil)
        for _ in 0..<5000 { cache.addRoute(route, for: key("/1000")) }
        #expect(cache.route(method: .get, target: ByteQueue(text: "/500")) != nil)
    }

    @Test("routes with the same sessions share one snapshot")
    func shared() {
        var cache = RouteCache()
        let route = RouteSessions(slots: [.slot("a"), .slot("b")])
        cache.addRoute(route, for: key("/x"))
        #expect(cache.equal(to: [.slot("a"), .slot("b")]) === route)
        #expect(cache.equal(to: [.slot("b"), .slot("a")]) == nil)
        #expect(cache.equal(to: [.slot("a")]) == nil)
    }

    @Test("scopes named by resources are shared by all workers, and bounded")
    func lessons() {
        let learned = LearnedScopes()
        let before = learned.version
        learned.learn(.init(slot: 0, scope: Scope(["pay"])), for: key("/pay"))
        #expect(learned.version != before)
        #expect(learned.all[key("/pay")]?.scope == Scope(["pay"]))
        for number in 0..<1000 { learned.learn(.init(slot: 0, scope: .empty), for: key("/\(number)")) }
        #expect(learned.all.count <= 1000)
        #expect(learned.all[key("/pay")] == nil)
        #expect(learned.all[key("/999")] != nil)
    }
}

extension Authenticator {
    /// A login that is never run.
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
