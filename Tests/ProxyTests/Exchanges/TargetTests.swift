// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import TestSupport
import Testing

@Suite("Targets that browsers, curl and libraries send")
struct TargetTests {
    @Test(
        "reach the upstream as they came",
        arguments: [
            "/film [2020].mkv".replacing(" ", with: "%20"), "/_next/[slug].js", "/a|b", "/a^b", "/{id}", "/`x`",
            "/api/v1/query?query=up{job=\"x\"}", "/?q=m\u{fc}nchen", "/?q=100%", "/?q=%&r=%4&s=%zz", "/?a=<b>'c'",
            "/?ids[]=1|2^3", "/a?b?c/../d",
        ])
    func forwarded(_ target: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get(target))
        let server = try upstream.accept()
        #expect(try server.head().hasPrefix("GET \(target) HTTP/1.1\r\n"))
        try server.send(answer())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
    }

    @Test(
        "are 400 if servers read them in several ways",
        arguments: [
            "/a\\b", "/a?b\\c", "/%", "/%4", "/%zz", "/a\"b", "/a<b>", "/\u{fc}", "/a#b", "/a?b#c", "/a\tb", "/a?b\tc",
            "/a?\u{7f}", "/a?\u{0}", "/a?\u{1b}",
        ])
    func refused(_ target: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        #expect(try proxy.fetch(get(target)).head.hasPrefix("HTTP/1.1 400 "))
    }

    @Test("are 400 if a route or a challenge is written with the encoded form", arguments: ["/a[b]/x", "/a%5bb]/x"])
    func encodedRoute(_ path: String) throws {
        let router = Router(routes: [.init(path: "/a%5Bb%5D/", users: [0], upstream: "other")], fallback: "bank")
        #expect(router.decide(host: "", path: path, method: "GET", user: 1) == .ambiguous)
        #expect(router.decide(host: "", path: "/a[c]/x", method: "GET", user: 1) == .found(.init(upstream: "bank")))
        let raw = Router(routes: [.init(path: "/a[b]/", users: [0], upstream: "other")], fallback: "bank")
        #expect(raw.decide(host: "", path: "/a%5Bb%5D/x", method: "GET", user: 1) == .ambiguous)
        #expect(raw.decide(host: "", path: "/a[b]/x", method: "GET", user: 1) == .notAllowed(route: 0))
    }
}
