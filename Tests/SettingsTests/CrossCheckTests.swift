// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import TestSupport
import Testing

@testable import Settings

@Suite("Problems that no single value shows")
struct CrossCheckTests {
    @Test("users of a listener that other machines reach are warned about")
    func users() {
        let yaml = """
            listeners:
              - address: 192.0.2.1:80
                users: [ann]
                routes:
                  - { path: /a/, users: ["1001"], upstream: u }
              - { address: "unix:/run/a", users: [ann], upstream: u }
              - { address: "[::1]:80", users: [ann], upstream: u }
            upstreams: { u: { url: "https://u" } }
            """
        let message =
            "warning: callers from other machines have no user on this machine, so this key refuses all of them"
        #expect(
            problems(yaml).filter { $0.contains("users") } == [
                "f:3:12: listeners[0].users: \(message)", "f:5:29: listeners[0].routes[0].users: \(message)",
            ])
    }

    @Test("an upstream's replay.disk beyond limits.replay is warned about")
    func replay() {
        func yaml(_ disk: String, _ limit: String) -> String {
            frame(upstream: "replay: { disk: \(disk) }", "limits: { replay: \(limit) }")
        }
        let message = "is more than `limits.replay`, which all bodies share: longer bodies are not kept"
        #expect(problems(yaml("2MiB", "1MiB")) == ["f:3:84: upstreams.u.replay.disk: warning: \(message)"])
        #expect(problems(yaml("1MiB", "1MiB")) == [])
        // Zero turns the disk off, which is intended.
        #expect(problems(yaml("2MiB", "0")) == [])
        #expect(problems(frame("limits: { replay: 1MiB }")) == [])
    }

    @Test("two challenges of one name are an error")
    func names() {
        let yaml = frame(
            """
            challenges:
              - { name: c, upstream: u, inject: { A: a } }
              - { name: c, upstream: u, inject: { B: b } }
            """)
        #expect(problems(yaml) == ["f:6:13: challenges[1].name: \"c\" is already the name of challenges[0]"])
    }

    @Test(
        "two challenges of one kind and realm at one pattern are an error",
        arguments: [
            ("security-check: P, answer: {}", "security-check: P, answer: { a: b }"),
            (
                "scheme: bearer, token: { grant: mobilefirst, url: \"https://a/\" }",
                "scheme: bearer, token: { grant: mobilefirst, url: \"https://b/\" }"
            ),
            ("inject: { A: a }", "inject: { B: b, a: a }"),
        ])
    func rivals(one: String, other: String) {
        let yaml = frame(
            """
            challenges:
              - { name: one, credential: x, at: "https://u.example:443/*", \(one) }
              - { name: two, credential: x, at: ["https://u.example/a", "https://U.example/*/"], \(other) }
            """)
        #expect(
            problems(yaml) == [
                "f:6:61: challenges[1].at[1]: \"one\" already answers this challenge here; this one would never be used"
            ])
    }

    @Test(
        "challenges that differ in check, realm or field may share a pattern",
        arguments: [
            ("security-check: P, answer: {}", "security-check: Q, answer: {}"),
            (
                "scheme: bearer, token: { grant: mobilefirst }",
                "scheme: bearer, realm: R, token: { grant: mobilefirst }"
            ),
            ("inject: { A: a }", "inject: { B: b }"), ("inject: { A: a }", "security-check: Q, answer: {}"),
        ])
    func noRivals(one: String, other: String) {
        let yaml = frame(
            """
            challenges:
              - { name: one, credential: x, upstream: u, \(one) }
              - { name: two, credential: x, upstream: u, \(other) }
            """)
        #expect(problems(yaml) == [])
    }

    @Test("a pattern that covers nothing is warned about, with the scheme that is missing")
    func reach() {
        let keys = "name: c, inject: { A: b }"
        func problem(_ pattern: String) -> [String] { problems(challenge("\(keys), at: \"\(pattern)\"")) }
        let nothing = "f:5:38: challenges[0].at: warning: covers nothing at any upstream"
        #expect(
            problem("u.example/*") == [
                "\(nothing); a pattern without a scheme and a port means port 80: write https:// before it"
            ])
        #expect(problem("https://v.example/*") == [nothing])
        #expect(problem("*@u.example:*/*") == [nothing])
        #expect(problem("https://u.example/a/b") == [])
        #expect(problem("*.example:443/a/*") == [])
        #expect(problem("u.example:*") == [])
        let check = challenge("name: c, security-check: P, answer: {}, at: \"https://v.example/*\"")
        #expect(problems(check) == ["f:5:51: challenges[0].at: warning: covers nothing at any upstream"])
    }

    @Test("a pattern reaches an upstream only if it covers something below the upstream's path")
    func reachBelow() {
        func problem(_ pattern: String) -> [String] {
            let yaml = """
                listeners: [{ address: "127.0.0.1:1", upstream: u }]
                upstreams: { u: { url: "https://u/a/b" } }
                challenges: [{ name: c, inject: { A: b }, at: "https://u\(pattern)" }]
                """
            return problems(yaml)
        }
        for pattern in ["/*", "/a/*", "/a/b", "/a/b/c", "/a/b/c/*"] { #expect(problem(pattern) == [], "\(pattern)") }
        for pattern in ["", "/a", "/a/c", "/a/c/*", "/b/*"] { #expect(problem(pattern).count == 1, "\(pattern)") }
    }

    @Test("secrets over http:// to another machine are an error unless plaintext is allowed")
    func plaintext() {
        func yaml(_ url: String, _ more: String = "") -> String {
            """
            listeners: [{ address: "127.0.0.1:1", upstream: u }]
            upstreams: { u: { url: "\(url)"\(more) } }
            challenges:
              - { name: c, upstream: u, inject: { A: "{a}" }, credential: x }
              - { name: d, at: "u/*", inject: { B: "{b}" }, credential: x }
            """
        }
        let advice = "go to another machine in plaintext: use https://, or set `plaintext: allow`"
        #expect(problems(yaml("http://u")) == ["f:2:24: upstreams.u.url: the secrets of \"c\", \"d\" would \(advice)"])
        #expect(problems(yaml("http://u", ", plaintext: allow")) == [])
        #expect(parsed(yaml("http://127.0.0.1:1")) != nil)
        #expect(problems(yaml("http://[::1]")) == problems(yaml("http://127.0.0.1")))
        let server = ", mobilefirst: { application: a, api: \"http://u/mfp/api\" }"
        #expect(
            problems(yaml("https://u", server)) == [
                "f:2:73: upstreams.u.mobilefirst.api: logins would \(advice)"
            ])
    }
}

@Suite("Advice on a mistake in the configuration")
struct SuggestionTests {
    @Test("a key that is shortened, cut short or half right is answered with the one that was meant")
    func suggestions() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:80", upstream: a }]
            upstreams:
              a: { url: "https://a/", tls: { minimum: 1.1 }, mobilefirst: { app: x, platform: ios, version: "1" } }
            challenges:
              - name: f
                upstream: a
                gateway: form
                credential: c
                detect: { redirect: /login }
                failed: { status: 403, because: bad-password }
                login: { page: login, params: { u: "{username}" } }
            """
        let found = problems(yaml)
        for words in [
            "app: unknown key; did you mean \"application\"?", "redirect: unknown key; did you mean \"redirect-to\"?",
            "params: unknown key; did you mean \"parameters\"?", "did you mean \"wrong-password\"?",
            "page: is neither a path that begins with /, such as /login,",
        ] { #expect(found.contains { $0.hasSuffix(words) || $0.contains(words) }, "\(words) \(found)") }
        #expect(found.contains { $0.contains("\"1.1\" is not one of 1.2, 1.3") && !$0.contains("did you mean") })
    }

    @Test("a bracket that is not closed is reported with the place where it was opened")
    func unclosed() {
        let found = problems("upstreams:\n  a: { url: \"https://a/\", tls: { minimum: 1.2 }\nchallenges: []\n")
        #expect(found.count == 1 && found[0].contains("that begins at line 2, column 6"), "\(found)")
    }
}

@Suite("Routes that earlier ones hide")
struct HiddenRouteTests {
    @Test("check names the first route that hides another, as a comparison with all earlier ones does")
    func plainScan() throws {
        var examples = Examples(seed: 9)
        var hidden = 0
        for _ in 0..<400 {
            let lines = (0..<8).map { _ in examples.route() }
            let text = """
                listeners: [{ address: "127.0.0.1:8080", routes: [\(lines.joined(separator: ", "))] }]
                upstreams: { u: "https://u.example/" }
                """
            let (_, problems) = Settings.parse(Array(text.utf8), file: "f", environment: [:])
            let told = problems.map { "\($0)" }.filter { $0.contains("is never used") }
            let routes = examples.made
            examples.made = []
            let expected = routes.indices.compactMap { later in
                routes[..<later].firstIndex { $0.hides(routes[later]) }
                    .map { "routes[\(later)]: is never used: routes[\($0)] matches" }
            }
            #expect(told.count == expected.count, "\(text)\n\(told)\n\(expected)")
            for (one, other) in zip(told, expected) { #expect(one.contains(other), "\(text)") }
            hidden += expected.count
        }
        #expect(hidden > 300)
    }

    private struct Route {
        let host: String?
        let path: String?
        let methods: [String]?

        func hides(_ later: Route) -> Bool {
            guard host == nil || host == later.host else { return false }
            if let methods {
                guard let others = later.methods, others.allSatisfy(methods.contains) else { return false }
            }
            guard let path else { return true }
            guard let other = later.path, other.utf8.starts(with: path.utf8) else { return false }
            return path.hasSuffix("/") || other.utf8.count == path.utf8.count
                || other.utf8.dropFirst(path.utf8.count).first == UInt8(ascii: "/")
        }
    }

    private struct Examples {
        private var random: SplitMix
        var made: [Route] = []

        init(seed: UInt64) { random = SplitMix(state: seed) }

        mutating func route() -> String {
            let route = Route(
                host: pick([nil, nil, "a.example", "b.example"]),
                path: pick([nil, "/", "/x", "/x/", "/x/y", "/x/y/", "/xy", "/z//", "/z/"]),
                methods: pick([nil, nil, ["GET"], ["POST"], ["GET", "POST"], ["PUT", "GET", "POST"]]))
            made.append(route)
            let parts = [
                "upstream: u", route.host.map { "host: \($0)" }, route.path.map { "path: \($0)" },
                route.methods.map { "methods: [\($0.joined(separator: ", "))]" },
            ]
            return "{ \(parts.compactMap(\.self).joined(separator: ", ")) }"
        }

        private mutating func pick<Element>(_ choices: [Element]) -> Element {
            choices[Int.random(in: choices.indices, using: &random)]
        }
    }
}
