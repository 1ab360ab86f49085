// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Gateway
import Testing

@Suite("Routes")
struct RouterTests {
    private typealias Route = Router.Route

    private func decide(
        _ routes: [Router.Route], fallback: String? = nil, host: String = "localhost", path: String = "/",
        method: String = "GET", user: UInt32? = nil
    ) -> Router.Decision {
        Router(routes: routes, fallback: fallback).decide(host: host, path: path, method: method, user: user)
    }

    @Test(
        "a path takes whole segments below it",
        arguments: [
            ("/a", "/a", true), ("/a", "/a/b", true), ("/a", "/a/", true), ("/a", "/ab", false), ("/a", "/", false),
            ("/a", "/A", false), ("/a/", "/a/", true), ("/a/", "/a/b", true), ("/a/", "/a", false), ("/", "/x", true),
            ("/a", "//a", false), ("/a", "/%61", false), ("/a", "", false), ("/a", "/b/../a", false),
        ])
    func paths(prefix: String, path: String, isTaken: Bool) {
        let decision = decide([Route(path: prefix, upstream: "up")], path: path)
        #expect(decision == (isTaken ? .found(.init(upstream: "up", route: 0)) : .none))
    }

    @Test("the first route that takes a request wins, then the fallback")
    func order() {
        let routes = [
            Route(path: "/a", methods: ["POST"], upstream: "post"), Route(path: "/a", upstream: "first"),
            Route(path: "/a/b", upstream: "second"),
        ]
        #expect(decide(routes, path: "/a/b") == .found(.init(upstream: "first", route: 1)))
        #expect(decide(routes, path: "/a/b", method: "POST") == .found(.init(upstream: "post", route: 0)))
        #expect(decide(routes, fallback: "all", path: "/c") == .found(.init(upstream: "all")))
        #expect(decide(routes, path: "/c") == .none)
        #expect(decide([], fallback: "all") == .found(.init(upstream: "all")))
    }

    @Test("hosts and methods are compared whole")
    func hosts() {
        let routes = [Route(host: "ledger.localhost", methods: ["GET", "HEAD"], upstream: "ledger")]
        #expect(decide(routes, host: "ledger.localhost") == .found(.init(upstream: "ledger", route: 0)))
        #expect(decide(routes, host: "ledger.localhost", method: "get") == .none)
        #expect(decide(routes, host: "x.ledger.localhost") == .none)
        #expect(decide(routes, host: "ledger") == .none)
    }

    @Test("a route for certain users is closed to others and to callers that nobody knows")
    func users() {
        let routes = [Route(path: "/a", users: [1000], upstream: "up")]
        #expect(decide(routes, path: "/a", user: 1000) == .found(.init(upstream: "up", route: 0)))
        #expect(decide(routes, path: "/a", user: 1001) == .notAllowed)
        #expect(decide(routes, path: "/a") == .notAllowed)
        #expect(decide(routes, path: "/b", user: 1001) == .none)
        #expect(decide(routes, fallback: "all", path: "/a", user: 1001) == .found(.init(upstream: "all")))
    }

    @Test("what is taken off ends before a slash")
    func stripping() {
        for prefix in ["/a/b", "/a/b/"] {
            let routes = [Route(path: prefix, upstream: "up", stripsPrefix: true)]
            #expect(decide(routes, path: "/a/b/c") == .found(.init(upstream: "up", stripped: 4, route: 0)))
        }
        let root = [Route(path: "/", upstream: "up", stripsPrefix: true)]
        #expect(decide(root, path: "/a") == .found(.init(upstream: "up", stripped: 0, route: 0)))
        let any = [Route(upstream: "up", stripsPrefix: true)]
        #expect(decide(any, path: "/a") == .found(.init(upstream: "up", stripped: 0, route: 0)))
    }

    @Test(
        "a path that an upstream may read as one of another route is not let past that route",
        arguments: [
            "/x/../accounts/1", "/%61ccounts/1", "/./accounts/1", "//accounts/1", "/x/%2e%2e/accounts/1",
            "/accounts;v=1/1", "/x%2f..%2Faccounts/1", "/x/..\\accounts/1",
            // A combining accent, which is one sign with the slash before it.
            "/%61ccounts/%CC%811", "//accounts/%CC%811", "/%61ccounts/%cd%be",
        ])
    func guarded(path: String) {
        let router = Router(
            routes: [Router.Route(path: "/accounts/", users: [7], upstream: "bank")], fallback: "other")
        #expect(router.decide(host: "", path: path, method: "GET", user: 7) == .ambiguous)
        // To others the route is not there, however the path is written.
        let plain = router.decide(host: "", path: "/accounts/1", method: "GET", user: nil)
        #expect(router.decide(host: "", path: path, method: "GET", user: nil) == plain)
    }

    @Test(
        "a path that leads to the same place however it is read goes there",
        arguments: ["/a%20b", "/a//b", "/a/./b", "/a;v=1", "/%C3%A4", "/a/../b", "/a/%zz", "/", "/..", "/a/."])
    func harmless(path: String) {
        let router = Router(
            routes: [Router.Route(path: "/accounts/", users: [7], upstream: "bank")], fallback: "other")
        let decision = router.decide(host: "", path: path, method: "GET", user: nil)
        #expect(decision == .found(Router.Destination(upstream: "other")))
    }
}
