// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import Settings

@Suite("Problems of listeners and admin")
struct ListenerProblemTests {
    @Test(
        "each problem of a listener is reported with its position and a remedy",
        arguments: [
            (
                "users: []",
                "f:1:62: listeners[0].users: is empty: no caller would be allowed; leave the key out to allow all"
            ),
            ("callers: 0", "f:1:64: listeners[0].callers: \"0\" is not a whole number from 1 to 1048576"),
            ("users: [a b]", "f:1:63: listeners[0].users[0]: \"a b\" is not a user name"),
            ("users: 4294967295", "f:1:62: listeners[0].users: \"4294967295\" is not a user id"),
            (
                "hosts: [\"*.a\", b]",
                "f:1:63: listeners[0].hosts[0]: \"*.a\" is not a host name (write it without a scheme, a port or wildcards)"
            ),
            (
                "hosts: [\"a:80\"]",
                "f:1:63: listeners[0].hosts[0]: \"a:80\" is not a host name (write it without a scheme, a port or wildcards)"
            ),
            (
                "browsers: alow",
                "f:1:65: listeners[0].browsers: \"alow\" is neither refuse nor allow, nor a list of origins; did you mean \"allow\"?"
            ),
            (
                "browsers: [https://a.example/]",
                "f:1:66: listeners[0].browsers[0]: \"https://a.example/\" is not an origin (use a scheme, a host and "
                    + "optionally a port, such as https://app.example.com)"
            ),
            (
                "health: health",
                "f:1:63: listeners[0].health: \"health\" is not a path of letters, digits and -._~/ that begins with /, such as "
                    + "/health"
            ),
            (
                "health: /",
                "f:1:63: listeners[0].health: \"/\" is not a path of letters, digits and -._~/ that begins with /, such as /health"
            ),
            ("browser: allow", "f:1:55: listeners[0].browser: unknown key; did you mean \"browsers\"?"),
            ("routes: {}", "f:1:63: listeners[0].routes: must be a list, but this is a mapping"),
            ("routes: [x]", "f:1:64: listeners[0].routes[0]: must be a mapping, but this is a single value"),
            ("routes: [{ path: /a }]", "f:1:64: listeners[0].routes[0].upstream: is missing"),
            (
                "routes: [{ upstream: v }]",
                "f:1:76: listeners[0].routes[0].upstream: there is no upstream \"v\""
            ),
            (
                "routes: [{ upstream: u, path: a }]",
                "f:1:85: listeners[0].routes[0].path: \"a\" is not a path prefix (begin with /, without a query or "
                    + "wildcards)"
            ),
            (
                "routes: [{ upstream: u, methods: [get] }]",
                "f:1:89: listeners[0].routes[0].methods[0]: \"get\" is not a method; did you mean \"GET\"?"
            ),
            (
                "routes: [{ upstream: u, methods: [] }]",
                "f:1:88: listeners[0].routes[0].methods: is empty: the route would match no request"
            ),
            (
                "routes: [{ upstream: u, strip-prefix: yes, path: /a }]",
                "f:1:93: listeners[0].routes[0].strip-prefix: \"yes\" is neither true nor false"
            ),
            (
                "routes: [{ upstream: u, strip-prefix: true }]",
                "f:1:93: listeners[0].routes[0].strip-prefix: needs `path`, the prefix to remove"
            ),
            (
                "routes: [{ upstream: u, path: /a }, { upstream: u, path: /a/b/, methods: [GET], users: [ann] }]",
                "f:1:91: listeners[0].routes[1]: is never used: routes[0] matches all its requests first and sends them to u"
            ),
            (
                "routes: [{ upstream: u, path: /a, users: [ann] }, { upstream: u, path: /a, users: [bob] }]",
                "f:1:105: listeners[0].routes[1]: is never used: routes[0] matches all its requests first and sends them to u"
            ),
            (
                "routes: [{ upstream: u, path: /a }, { upstream: u, path: /a }]",
                "f:1:91: listeners[0].routes[1]: is never used: routes[0] matches all its requests first and sends them to u"
            ),
        ])
    func listener(text: String, problem: String) {
        #expect(errors(frame(listener: text)) == [problem])
    }

    @Test(
        "an invalid listen address is reported with its correct form",
        arguments: [
            (
                "8080",
                "\"8080\" is not an address (use HOST:PORT, unix:/path[?mode=0660] or systemd:NAME); did you mean \"127.0.0.1:8080\"?"
            ),
            ("127.0.0.1:http", "\"http\" is not a port (a number from 0 to 65535)"),
            ("127.0.0.1:65536", "\"65536\" is not a port (a number from 0 to 65535)"),
            ("127.0.0.1:", "\"\" is not a port (a number from 0 to 65535)"),
            (
                "example.com:80",
                "\"example.com\" is not an IP address (use 127.0.0.1, [::1], another one of this machine, or localhost)"
            ),
            (
                "::1:80",
                "\"::1\" is not an IP address (use 127.0.0.1, [::1], another one of this machine, or localhost)"
            ),
            (
                "127.0.0.256:80",
                "\"127.0.0.256\" is not an IP address (use 127.0.0.1, [::1], another one of this machine, or localhost)"
            ),
            ("unix:run/a", "the path of a Unix socket is absolute: unix:/run/countersign/http.sock"),
            ("unix:/run/a?mode=0888", "the ? must be followed by mode= and octal digits: ?mode=0660"),
            ("unix:/run/a?mode=1777", "the ? must be followed by mode= and octal digits: ?mode=0660"),
            ("unix:/run/a?mode=", "the ? must be followed by mode= and octal digits: ?mode=0660"),
            ("unix:/run/a?user=x", "the ? must be followed by mode= and octal digits: ?mode=0660"),
            ("unix:/" + String(repeating: "a", count: 107), "the path of a Unix socket has at most 107 bytes"),
            ("systemd:", "systemd: must be followed by the FileDescriptorName= of a socket unit"),
            ("systemd:a:b", "systemd: must be followed by the FileDescriptorName= of a socket unit"),
        ])
    func address(text: String, reason: String) {
        #expect(throws: ListenAddressError.self) { try ListenAddress(parsing: text) }
        let yaml = "listeners: [{ address: \"\(text)\", upstream: u }]\nupstreams: { u: { url: \"https://u\" } }"
        #expect(problems(yaml) == ["f:1:24: listeners[0].address: \(reason)"])
    }

    @Test("a listener that other machines reach is warned about, and such an admin address is refused")
    func exposed() {
        let yaml = """
            listeners: [{ address: "0.0.0.0:80", upstream: u }]
            admin: { address: ["192.0.2.1:9180", "127.0.0.1:9180"] }
            upstreams: { u: { url: "https://u" } }
            """
        #expect(
            problems(yaml) == [
                "f:1:24: listeners[0].address: warning: every machine that reaches this address can use the credentials; "
                    + "there is no TLS and no login here",
                "f:2:20: admin.address[0]: must be a loopback address or a Unix socket, because the status shows the "
                    + "sessions",
            ])
    }

    @Test("an address for health checks alone, or for users of this machine, opens the credentials to no machine")
    func health() {
        let yaml = """
            listeners:
              - { address: "0.0.0.0:80", routes: [], health: /health }
              - { address: "0.0.0.0:81", users: [root], health: /health }
              - { address: "127.0.0.1:82", users: [root], auth-requests: true, health: /authority/health }
            upstreams: { u: { url: "https://u" } }
            """
        #expect(
            problems(yaml) == [
                "f:4:76: listeners[2].health: is a path of auth requests; choose another one, such as /health"
            ])
    }

    @Test("an address may be used once, and port 0 any number of times")
    func sameAddress() {
        let yaml = """
            listeners: [{ address: "[::1]:80", upstream: u }, { address: "[::1]:80", upstream: u }]
            admin: { address: "[::1]:80" }
            upstreams: { u: { url: "https://u" } }
            """
        #expect(
            problems(yaml) == [
                "f:1:62: listeners[1].address: the address is already used by listeners[0].address",
                "f:2:19: admin.address: the address is already used by listeners[0].address",
            ])
        #expect(problems(yaml.replacing("[::1]:80", with: "127.0.0.1:0")) == [])
    }

    @Test("a listener without an upstream and routes is refused if there are several upstreams")
    func nowhere() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:80" }, 127.0.0.1:81]
            upstreams: { u: { url: "https://u" }, v: "https://v" }
            """
        #expect(
            problems(yaml).filter { !$0.contains("warning") } == [
                "f:1:13: listeners[0]: has neither an upstream nor routes: add one of them",
                "f:1:42: listeners[1]: has neither an upstream nor routes: add one of them",
            ])
    }

    @Test("a listener leads to the only upstream, and both may be written as an address alone")
    func shortForms() throws {
        let short = "listeners: [127.0.0.1:80]\nupstreams: { u: https://u/ }"
        let long = "listeners: [{ address: 127.0.0.1:80, upstream: u }]\nupstreams: { u: { url: https://u/ } }"
        let (settings, problems) = Settings.parse(Array(short.utf8), file: "f", environment: [:])
        #expect(problems.isEmpty && settings == Settings.parse(Array(long.utf8), file: "f", environment: [:]).settings)
        let report = EffectiveReport(Array(short.utf8), file: "f", isEffective: true, environment: [:])
        let effective = try #require(report.lines).joined(separator: "\n")
        #expect(effective.contains("upstream: u") && effective.contains("url: https://u/"), "\(effective)")
        #expect(Settings.parse(Array(effective.utf8), file: "f", environment: [:]).settings == settings)
    }

    @Test("a fault in a short form is reported at the key that it stands for")
    func shortFormFaults() {
        #expect(
            problems("listeners: [nowhere]\nupstreams: { u: nowhere }").map { String($0.prefix(36)) } == [
                "f:1:13: listeners[0].address: \"nowhe", "f:2:17: upstreams.u.url: is not an a",
            ])
    }
}

@Suite("access-log")
struct AccessLogTests {
    @Test(
        "access-log is a format name or a mapping",
        arguments: [
            ("none", AccessLogSettings()), ("json", AccessLogSettings(format: .json)),
            ("{ format: common, to: stdout }", AccessLogSettings(format: .common)),
            (
                "{ format: json, to: /var/log/a.log, query: true }",
                AccessLogSettings(format: .json, path: "/var/log/a.log", query: true)
            ),
        ])
    func right(text: String, settings: AccessLogSettings) {
        #expect(parsed(frame("access-log: \(text)"))?.accessLog == settings)
    }

    @Test(
        "each problem of access-log is reported with its position and a remedy",
        arguments: [
            ("combined", "access-log: \"combined\" is not one of common, json, none"),
            ("{ to: /a }", "access-log.format: is missing"),
            (
                "{ format: json, to: a.log }",
                "access-log.to: \"a.log\" is neither stdout nor the absolute path of a file"
            ),
        ])
    func wrong(text: String, problem: String) {
        #expect(problems(frame("access-log: \(text)")).contains { $0.hasSuffix(problem) })
    }
}
