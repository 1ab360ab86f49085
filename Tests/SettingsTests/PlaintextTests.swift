// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import Testing

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
            "localhost.evil", "localhost.", "127.0.0.1.nip.io", "127.1", "0x7f.1", "0x7f.0.0.1", "0177.0.0.1",
            "2130706433",
            "127.0.0.1.evil", "127.0.0.256", "127.0.0.08", "127.0.0.010", "127.0.0", "evil-localhost",
            "[::ffff:10.0.0.1]", "[::ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[::2]", "0.0.0.0", "[::]", "10.0.0.1", "ip6-localhost", "xlocalhost",
        ])
    func disguises(host: String) {
        // With a dot at its end the name is the same one.
        let isLocal = host == "localhost."
        #expect(errors("http://\(host)/").isEmpty == isLocal)
        #expect(errors("https://\(host)/") == [])
        #expect(errors("http://\(host)/", ", http: \"2\"").isEmpty == isLocal)
    }

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
