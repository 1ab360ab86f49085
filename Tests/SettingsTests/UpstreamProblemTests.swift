// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import Testing

@Suite("Problems of upstreams")
struct UpstreamProblemTests {
    @Test(
        "each problem of an upstream is reported with its position and a remedy",
        arguments: [
            ("http: 3", "f:3:74: upstreams.u.http: \"3\" is not one of auto, 1.1, 2"),
            ("timeouts: { connect: 5 }", durationProblem("connect", 89, "5")),
            ("timeouts: { login: 60 }", durationProblem("login", 87, "60")),
            ("timeouts: { idle: 1.5h }", durationProblem("idle", 86, "1.5h")),
            ("timeouts: { idle: -1s }", durationProblem("idle", 86, "-1s")),
            ("timeouts: { idle: 0s }", "f:3:86: upstreams.u.timeouts.idle: \"0s\" is not between 1ms and a year"),
            (
                "timeouts: { idle: 9223372036854775807h }",
                "f:3:86: upstreams.u.timeouts.idle: \"9223372036854775807h\" is not between 1ms and a year"
            ),
            (
                "timeouts: { idel: 1s }",
                "f:3:80: upstreams.u.timeouts.idel: unknown key; did you mean \"idle\"?"
            ),
            (
                "replay: { disk: 16MB }",
                "f:3:84: upstreams.u.replay.disk: \"16MB\" is not a valid size (use 64KiB, 16MiB)"
            ),
            (
                "replay: { disk: 9007199254740992GiB }",
                "f:3:84: upstreams.u.replay.disk: \"9007199254740992GiB\" is more than 1024GiB"
            ),
            (
                "proxy: ftp://p:1",
                "f:3:75: upstreams.u.proxy: is not a proxy (use none, http://HOST:PORT or socks5h://HOST:PORT)"
            ),
            (
                "proxy: http://p",
                "f:3:75: upstreams.u.proxy: is not a proxy (use none, http://HOST:PORT or socks5h://HOST:PORT)"
            ),
            (
                "proxy: \"http://[::1]\"",
                "f:3:75: upstreams.u.proxy: is not a proxy (use none, http://HOST:PORT or socks5h://HOST:PORT)"
            ),
            (
                "proxy: http://ann:pw@p:1",
                "f:3:75: upstreams.u.proxy: a proxy with a user name and password is not supported; secrets do not "
                    + "belong in this file"
            ),
            (
                "tls: { ca: ca.pem }",
                "f:3:79: upstreams.u.tls.ca: \"ca.pem\" is not an absolute path: it must begin with /"
            ),
            (
                "tls: { key: /dev/null }",
                "f:3:73: upstreams.u.tls: certificate and key go together: certificate is missing"
            ),
            (
                "tls: { pin: sha256//abc= }",
                "f:3:80: upstreams.u.tls.pin: is not a pin (use sha256// and the base64 of the public key's SHA-256, 44 characters)"
            ),
            (
                "password: secret",
                "f:3:68: upstreams.u.password: unknown key; secrets do not belong in this file: keep it in a credential "
                    + "source, and name that credential with `credential:`"
            ),
            ("check: { path: health }", checkPathProblem(83)),
            ("check: { path: \"/a b\" }", checkPathProblem(83)),
            ("check: { path: \"/a#b\" }", checkPathProblem(83)),
            ("check: { path: /, every: 999ms }", "f:3:93: upstreams.u.check.every: must be at least 1s"),
            (
                "check: { path: /, status: 100 }",
                "f:3:94: upstreams.u.check.status: \"100\" is not a whole number from 200 to 599"
            ),
            ("check: { status: 200 }", "f:3:75: upstreams.u.check.path: is missing"),
            ("plaintext: yes", "f:3:79: upstreams.u.plaintext: \"yes\" is not one of allow, refuse"),
        ])
    func upstream(text: String, problem: String) {
        #expect(errors(frame(upstream: text)) == [problem])
    }

    @Test(
        "an invalid upstream address is reported",
        arguments: [
            ("u.example", "is not an address (use http:// or https://, a host, and optionally a port and a path)"),
            (
                "ftp://u.example",
                "is not an address (use http:// or https://, a host, and optionally a port and a path)"
            ),
            (
                "https://ann:pw@u.example/",
                "an address must not contain a user name or a password; keep them in a credential source"
            ),
            ("https://u.example/?a=b", "must not have a query: the paths of requests are appended to it"),
            ("", "is empty"),
        ])
    func url(text: String, reason: String) {
        let yaml = "listeners: [{ address: \"127.0.0.1:1\", upstream: u }]\nupstreams: { u: { url: \"\(text)\" } }"
        #expect(problems(yaml) == ["f:2:24: upstreams.u.url: \(reason)"])
    }

    @Test("a MobileFirst server needs an application, and an upstream with a name")
    func mobileFirst() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:1", upstream: "a b" }]
            upstreams:
              a b:
                url: https://u
                mobilefirst: { platform: windows, adapter: x }
            """
        #expect(
            problems(yaml) == [
                "f:3:3: upstreams.a b: \"a b\" is not a valid name (use letters, digits, -, _ and .; at most 64 characters; "
                    + "do not begin with - or .)",
                "f:5:18: upstreams.a b.mobilefirst.application: is missing",
                "f:5:30: upstreams.a b.mobilefirst.platform: \"windows\" is not one of android, ios, web",
                "f:5:39: upstreams.a b.mobilefirst.adapter: unknown key",
            ])
    }

    @Test("a tls section of an http:// upstream is warned about")
    func needlessTLS() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:1", upstream: u }]
            upstreams: { u: { url: "http://localhost", tls: { minimum: \"1.2\" } } }
            """
        #expect(
            problems(yaml) == [
                "f:2:49: upstreams.u.tls: warning: the upstream is reached without TLS, through http://"
            ])
    }
}

private func durationProblem(_ key: String, _ column: Int, _ text: String) -> String {
    "f:3:\(column): upstreams.u.timeouts.\(key): \"\(text)\" is not a duration (use 500ms, 10s, 5m, 2h)"
}

private func checkPathProblem(_ column: Int) -> String {
    "f:3:\(column): upstreams.u.check.path: is not a path (begin with /; use only visible ASCII characters without #, and "
        + "write others as %C3%A4)"
}

@Suite("Secrets in plaintext")
struct PlaintextTests {
    private let advice = "in plaintext: use https://, or set `plaintext: allow`"

    private func yaml(_ url: String, _ more: String = "", challenges: String = "") -> String {
        """
        listeners: [{ address: "127.0.0.1:1", upstream: u }]
        upstreams: { u: { url: "\(url)"\(more) } }
        \(challenges.isEmpty ? "" : "challenges:\n  - \(challenges)")
        """
    }

    private func errors(_ url: String, _ more: String = "") -> [String] {
        problems(yaml(url, more, challenges: "{ name: c, upstream: u, inject: { A: \"{a}\" }, credential: x }"))
    }

    @Test(
        "an address that only resembles a loopback address is not treated as one",
        arguments: [
            "localhost.evil", "localhost.", "127.0.0.1.nip.io", "127.0.0.1.evil", "evil-localhost",
            "[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[::2]", "0.0.0.0", "[::]", "10.0.0.1", "ip6-localhost", "xlocalhost",
        ])
    func disguises(host: String) {
        // A final dot does not change the name.
        let isLocal = host == "localhost."
        #expect(errors("http://\(host)/").isEmpty == isLocal)
        #expect(errors("https://\(host)/") == [])
        #expect(errors("http://\(host)/", ", http: \"2\"").isEmpty == isLocal)
    }

    @Test(
        "numbers of an IPv4 address are read as browsers and curl read them",
        arguments: [
            ("127.1", true), ("0x7f.1", true), ("0x7f.0.0.1", true), ("0177.0.0.1", true), ("2130706433", true),
            ("127.0.0", true), ("127.0.0.010", true), ("10.1", false), ("0xa.1", false), ("167772161", false),
        ])
    func numbers(host: String, isLocal: Bool) {
        #expect(errors("http://\(host)/").isEmpty == isLocal)
        #expect(errors("https://\(host)/") == [])
    }

    @Test(
        "numbers that are no IPv4 address are no host",
        arguments: ["127.0.0.256", "127.0.0.08", "1.2.3.4.5", "0x100000000"])
    func wrongNumbers(host: String) { #expect(errors("https://\(host)/").count == 1) }

    @Test(
        "plaintext to loopback names and addresses is allowed",
        arguments: ["localhost", "LOCALHOST", "a.localhost", "127.0.0.1", "127.8.9.1", "[::1]"])
    func here(host: String) {
        #expect(errors("http://\(host):8080/") == [])
    }

    @Test(
        "plaintext to a loopback address behind a proxy is an error",
        arguments: ["http://127.0.0.1:3128", "socks5h://proxy.example:1080"])
    func proxied(proxy: String) {
        let told = "f:2:24: upstreams.u.url: the secrets of \"c\" would go through a proxy \(advice)"
        #expect(errors("http://localhost/", ", proxy: \"\(proxy)\"") == [told])
        #expect(errors("http://localhost/", ", proxy: \"\(proxy)\", plaintext: allow") == [])
        #expect(errors("https://localhost/", ", proxy: \"\(proxy)\"") == [])
    }

    @Test("a session that would be sent over http:// is reported as a secret")
    func sessions() {
        let server = ", mobilefirst: { application: a, api: \"https://v/mfp/api\" }"
        #expect(
            problems(yaml("http://u/", server)) == [
                "f:2:24: upstreams.u.url: the logins would go to another machine \(advice)"
            ])
    }

    @Test("plaintext: allow of one upstream does not apply to another")
    func others() {
        let yaml = """
            listeners: [{ address: "127.0.0.1:1", upstream: u, routes: [{ path: /v/, upstream: v }] }]
            upstreams: { u: { url: "https://a/u/", plaintext: allow }, v: { url: "https://a/v/" } }
            challenges:
              - name: c
                at: https://a/*
                scheme: bearer
                credential: x
                token: { grant: mobilefirst, url: "http://b/" }
            """
        #expect(
            problems(yaml) == [
                "f:8:39: challenges[0].token.url: secrets would go to another machine \(advice) at the upstream v"
            ])
        #expect(problems(yaml.replacing("/v/\" }", with: "/v/\", plaintext: allow }")) == [])
    }
}
