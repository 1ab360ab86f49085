// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Proxy
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
        "a route's path includes whole segments below it",
        arguments: [
            ("/a", "/a", true), ("/a", "/a/b", true), ("/a", "/a/", true), ("/a", "/ab", false), ("/a", "/", false),
            ("/a", "/A", false), ("/a/", "/a/", true), ("/a/", "/a/b", true), ("/a/", "/a", false), ("/", "/x", true),
            ("/a", "//a", false), ("/a", "/%61", false), ("/a", "", false), ("/a", "/b/../a", false),
        ])
    func paths(prefix: String, path: String, isTaken: Bool) {
        let decision = decide([Route(path: prefix, upstream: "up")], path: path)
        #expect(decision == (isTaken ? .found(.init(upstream: "up", route: 0)) : .none))
    }

    @Test("the first route that matches a request decides, then the fallback")
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

    @Test("an address without a path means the root, and does not bypass a route for everything")
    func emptyPath() {
        let routes = [Route(path: "/", users: [1000], upstream: "up")]
        #expect(decide(routes, fallback: "all", path: "", user: 1000) == .found(.init(upstream: "up", route: 0)))
        #expect(decide(routes, fallback: "all", path: "", user: 1001) == .notAllowed(route: 0))
    }

    @Test("a route's host and methods are compared completely")
    func hosts() {
        let routes = [Route(host: "ledger.localhost", methods: ["GET", "HEAD"], upstream: "ledger")]
        #expect(decide(routes, host: "ledger.localhost") == .found(.init(upstream: "ledger", route: 0)))
        #expect(decide(routes, host: "ledger.localhost", method: "get") == .none)
        #expect(decide(routes, host: "x.ledger.localhost") == .none)
        #expect(decide(routes, host: "ledger") == .none)
    }

    @Test("a route with `users` refuses other users and unknown callers")
    func users() {
        let routes = [Route(path: "/a", users: [1000], upstream: "up")]
        #expect(decide(routes, path: "/a", user: 1000) == .found(.init(upstream: "up", route: 0)))
        #expect(decide(routes, path: "/a", user: 1001) == .notAllowed(route: 0))
        #expect(decide(routes, path: "/a") == .notAllowed(route: 0))
        #expect(decide(routes, path: "/b", user: 1001) == .none)
    }

    @Test("a caller whom the first route refuses gets neither a later route nor the listener's own upstream")
    func firstMatchDecides() {
        let routes = [
            Route(path: "/a/", users: [1000], upstream: "up"), Route(path: "/a/", users: [1001], upstream: "up"),
            Route(path: "/", upstream: "all"),
        ]
        for user in [1001, 1002, nil] as [UInt32?] {
            #expect(decide(routes, fallback: "all", path: "/a/x", user: user) == .notAllowed(route: 0))
            #expect(decide([routes[0]], fallback: "all", path: "/a/x", user: user) == .notAllowed(route: 0))
            #expect(decide(routes, path: "/b", user: user) == .found(.init(upstream: "all", route: 2)))
        }
        // The route does not match another method or host.
        let narrow = [Route(host: "a.localhost", path: "/a/", methods: ["GET"], users: [1000], upstream: "up")]
        #expect(decide(narrow, fallback: "all", host: "a.localhost", path: "/a/x") == .notAllowed(route: 0))
        #expect(
            decide(narrow, fallback: "all", host: "a.localhost", path: "/a/x", method: "PUT")
                == .found(.init(upstream: "all")))
        #expect(decide(narrow, fallback: "all", path: "/a/x") == .found(.init(upstream: "all")))
    }

    @Test("the stripped prefix of a route ends before a slash")
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
        "a path that an upstream may read as one of another route does not bypass that route",
        arguments: [
            "/x/../accounts/1", "/%61ccounts/1", "/./accounts/1", "//accounts/1", "/x/%2e%2e/accounts/1",
            "/accounts;v=1/1", "/x%2f..%2Faccounts/1", "/x/..\\accounts/1",
            // A combining accent, which forms one character with the slash before it.
            "/%61ccounts/%CC%811", "//accounts/%CC%811", "/%61ccounts/%cd%be",
        ])
    func guarded(path: String) {
        let router = Router(
            routes: [Router.Route(path: "/accounts/", users: [7], upstream: "bank")], fallback: "other")
        #expect(router.decide(host: "", path: path, method: "GET", user: 7) == .ambiguous)
        #expect(router.decide(host: "", path: path, method: "GET", user: nil) == .ambiguous)
        #expect(router.decide(host: "", path: "/accounts/1", method: "GET", user: nil) == .notAllowed(route: 0))
    }

    @Test(
        "a path that only some servers read as a guarded one is refused for every user",
        arguments: [
            // Tomcat strips parameters before it decodes.
            "/public/../admin/do;%2f..%2f..%2fpublic/", "/public/..;/admin/do",
            // A server that leaves %2f alone, and one that decodes twice.
            "/public/../admin/%2f..%2f..%2fpublic/x", "/public/%252e%252e/admin/x", "/public/..%255cadmin/x",
            "/public/%2e%2e/admin%2fx", "/public/x/..%2f../admin/x", "/public//../admin/x", "/public/a;b/../../admin/",
            // IIS and other case-insensitive systems.
            "/public/%5c../%5c../admin/x", "/public/%25u002e./x", "/public/%c0%ae%c0%ae/admin/x", "/public/%00/x",
        ])
    func disagreement(path: String) {
        let routes = [
            Route(path: "/admin/", users: [1001], upstream: "up"), Route(path: "/public/", upstream: "up"),
        ]
        for user in [1001, 1002] as [UInt32] { #expect(decide(routes, path: path, user: user) == .ambiguous) }
    }

    @Test("a path that differs from a guarded one only in capitals is refused")
    func capitals() {
        let routes = [Route(path: "/Admin/", users: [1001], upstream: "up")]
        for path in ["/ADMIN/x", "/admin/x", "/x/%2e%2e/aDMIN/x"] {
            #expect(decide(routes, fallback: "up", path: path) == .ambiguous)
        }
        #expect(decide(routes, fallback: "up", path: "/ADMINS/x") == .found(.init(upstream: "up")))
        #expect(decide(routes, path: "/ADMIN/x") == .none)
    }

    @Test(
        "routes to one upstream for the same users accept any spelling of a path",
        arguments: [
            "/gitlab/api/v4/projects/group%2Fproject", "/gitlab/a/..%2f..%2f/other/x", "/gitlab/%u0041", "/GITLAB/",
        ])
    func indifferent(path: String) {
        let routes = [Route(path: "/gitlab/", users: [7], upstream: "up"), Route(users: [7], upstream: "up")]
        guard case .found(let destination) = decide(routes, path: path, user: 7) else {
            Issue.record("\(path) goes nowhere")
            return
        }
        #expect(destination.upstream == "up")
    }

    @Test("an encoded slash below a route's own path passes")
    func encodedSlash() {
        let routes = [
            Route(path: "/gitlab/", users: [7], upstream: "gitlab"), Route(path: "/other/", upstream: "other"),
        ]
        for path in ["/gitlab/api/v4/projects/group%2Fproject", "/gitlab/a%20b/c;v=1/%C3%A4", "/gitlab/100%25"] {
            #expect(decide(routes, path: path, user: 7) == .found(.init(upstream: "gitlab", route: 0)))
        }
    }

    @Test("a path with more readings than can be compared is refused where routes differ, and passes where they do not")
    func manyReadings() {
        let path = "/a" + String(repeating: "/%2e%252e;x//%5c%2f", count: 400)
        let routes = [Route(path: "/admin/", users: [7], upstream: "up")]
        #expect(decide(routes, fallback: "up", path: path) == .ambiguous)
        #expect(decide([], fallback: "up", path: path) == .found(.init(upstream: "up")))
    }

    @Test(
        "a path whose readings all match the same route is forwarded",
        arguments: ["/a%20b", "/a//b", "/a/./b", "/a;v=1", "/%C3%A4", "/a/../b", "/a/%zz", "/", "/..", "/a/."])
    func harmless(path: String) {
        let router = Router(
            routes: [Router.Route(path: "/accounts/", users: [7], upstream: "bank")], fallback: "other")
        let decision = router.decide(host: "", path: path, method: "GET", user: nil)
        #expect(decision == .found(Router.Destination(upstream: "other")))
    }
}

@Suite("Host names that are served")
struct HostPolicyTests {
    private let policy = HostPolicy(names: ["Bank.Example", "192.0.2.7", "fe80::1", "[2001:db8::1]", "dotted.example."])

    private func accepts(_ authority: String) -> Bool {
        let bytes = Array(authority.utf8)
        return policy.accepts(ByteRange(start: 0, end: bytes.count), in: bytes.span)
    }

    @Test(
        "loopback and configured host names are served in any case, on any port, with a trailing dot",
        arguments: [
            "localhost", "LOCALHOST", "localhost.", "localhost:8080", "127.0.0.1", "127.0.0.1:1", "[::1]", "[::1]:8080",
            "bank.localhost", "a.b.localhost:80", "bank.example", "BANK.EXAMPLE:443", "bank.example.", "192.0.2.7:80",
            "[fe80::1]", "[2001:DB8::1]:8080", "dotted.example", "localhost:", "127.1.2.3", "127.255.255.255:80",
            "[0:0:0:0:0:0:0:1]", "[::0001]:80", "[2001:db8:0:0::1]", "127.0.0.1.",
        ])
    func served(authority: String) {
        #expect(accepts(authority))
    }

    @Test(
        "names that a browser can be made to resolve to a loopback address are not served",
        arguments: [
            "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost", "notlocalhost:8080",
            "bank.example.evil.example", "xbank.example", "127.0.0.1.nip.io", "localhost..", "bank.example..",
            "2130706433",
            "0x7f000001", "127.1", "127.0.1", "127.0.0.256", "127.0.0.01", "128.0.0.1", "127.0.0.1.1", "0127.0.0.1",
            "0.0.0.0", "[::]", "[::2]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "", "user@localhost", "localhost:99999",
            "localhost:8080:1", "[::1", "local host", "localhost%2e", "[localhost]",
        ])
    func refused(authority: String) {
        #expect(!accepts(authority))
    }
}
