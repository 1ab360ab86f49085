// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire
import TestSupport
import Testing

@testable import Proxy

@Suite("Addresses of the upstream as the caller gets them")
struct ReverseMappingTests {
    /// One row: the upstream's value, and the caller's; `nil` if unchanged.
    typealias Row = (said: String, got: String?)

    private func expect(_ rows: [Row], by map: ReverseMapping, sourceLocation: SourceLocation = #_sourceLocation) {
        for row in rows {
            let bytes = Array(row.said.utf8)
            let local = map.local(bytes.span, ByteRange(start: 0, end: bytes.count))
            #expect(
                local.map { String(decoding: $0, as: UTF8.self) } == row.got, "\(row.said)",
                sourceLocation: sourceLocation)
        }
    }

    private func map(
        _ url: String, prefix: String = "", authority: String = "localhost:8080", aliases: [Origin] = []
    ) throws -> ReverseMapping {
        let routes = prefix.isEmpty ? [] : [Router.Route(path: "\(prefix)/", upstream: "bank", stripsPrefix: true)]
        return ReverseMapping(
            authority: Array(authority.utf8), here: try place("bank", url, prefix: prefix, aliases: aliases),
            router: Router(routes: routes, fallback: prefix.isEmpty ? "bank" : nil))
    }

    private func place(
        _ name: String, _ url: String, prefix: String = "", host: String? = nil, aliases: [Origin] = []
    ) throws -> MappedAddress {
        let url = try #require(WebURL(url))
        let path = url.path.hasSuffix("/") ? url.path.dropLast() : Substring(url.path)
        return MappedAddress(
            upstream: name, origin: url.origin, aliases: aliases, base: Array(path.utf8), prefix: Array(prefix.utf8),
            host: host)
    }

    @Test("an address at the upstream's origin, however it is spelled, becomes one at the caller's")
    func origins() throws {
        expect(
            [
                ("https://bank.example/a?b=c#d", "http://localhost:8080/a?b=c#d"),
                ("HTTPS://Bank.Example:443/A", "http://localhost:8080/A"),
                ("https://bank.example:/a", "http://localhost:8080/a"),
                ("https://bank.example./a", "http://localhost:8080/a"),
                ("https://bank.example:0443/a", "http://localhost:8080/a"),
                ("//bank.example/a", "http://localhost:8080/a"), ("//bank.example:443", "http://localhost:8080/"),
                ("https://bank.example", "http://localhost:8080/"),
                ("https://bank.example?a", "http://localhost:8080/?a"),
                ("https://bank.example#a", "http://localhost:8080/#a"),
                ("https://bank.example//a/../%2e/b c\u{e4}?x[]=|", "http://localhost:8080//a/../%2e/b c\u{e4}?x[]=|"),
                // The same server, which does not know of the TLS in front of it.
                ("http://bank.example/a", "http://localhost:8080/a"),
                ("http://bank.example:80", "http://localhost:8080/"),
            ], by: try map("https://bank.example/"))
        expect(
            [
                ("http://127.0.0.1:8443/a", "http://[::1]:8080/a"), ("//127.0.0.1:8443/a", "http://[::1]:8080/a"),
                ("https://127.0.0.1:8443/a", nil), ("http://127.0.0.1/a", nil), ("//127.0.0.1/a", nil),
            ], by: try map("http://127.0.0.1:8443/", authority: "[::1]:8080"))
        expect([("http://[::1]:81/a", "http://u/a")], by: try map("http://[::1]:81/", authority: "u"))
        // A redirect from HTTP to HTTPS must not become a loop.
        expect([("https://bank.example/a", nil)], by: try map("http://bank.example/"))
    }

    @Test(
        "addresses of other servers, relative and ambiguous ones are forwarded unchanged",
        arguments: [
            "https://other.example/a", "https://bank.example.evil/a", "https://bank.example:444/a",
            "http://bank.example:443/",
            "ftp://bank.example/", "mailto:a@bank.example", "https:/a", "https:a", "https://", "https:///a", "https",
            "https://user@bank.example/", "https://bank.example@evil/", "https://bank.example\\@evil/",
            "https:\\\\bank.example/",
            "https://bank.example:x/", "https://bank.example:65536/", "https://[bank.example]/", "//other.example/",
            "///bank.example/",
            "/", "/a", "/a/../b", "a", "./a", "../a", "?a", "#a", "", ":", "://bank.example/",
            "https://bank%2eexample/",
            "https://bank.example:443:443/", "/\\bank.example",
        ])
    func untouched(said: String) throws {
        expect([(said, nil)], by: try map("https://bank.example/"))
    }

    @Test("the path of the url is taken off, and what strip-prefix took is put back")
    func paths() throws {
        expect(
            [
                ("https://bank.example/api/a", "http://localhost:8080/a"), ("/api/a?b#c", "/a?b#c"), ("/api/", "/"),
                ("/api", "/"), ("/api?x", "/?x"), ("https://bank.example/api", "http://localhost:8080/"),
                // Outside the paths that are served here.
                ("/", nil), ("/login", nil), ("/apis", nil), ("/API/a", nil), ("https://bank.example/login", nil),
                ("https://bank.example/", nil), ("https://bank.example", nil), ("/api/../login", nil),
                ("/api/a/%2E%2e/b", nil), ("/api/.", nil), ("/%61pi/a", nil), ("", nil), ("a", nil),
            ], by: try map("https://bank.example/api/"))
        expect(
            [
                ("https://bank.example/a", "http://localhost:8080/p/q/a"), ("/a?b", "/p/q/a?b"), ("/", "/p/q/"),
                ("https://bank.example", "http://localhost:8080/p/q/"), ("/a/..", nil),
            ], by: try map("https://bank.example/", prefix: "/p/q"))
        expect(
            [("https://bank.example/api/a", "http://localhost:8080/p/a"), ("/api", "/p/"), ("/p/a", nil), ("/a", nil)],
            by: try map("https://bank.example/api", prefix: "/p"))
    }

    @Test("a mapped path is never read as another host's address")
    func hostlikePaths() throws {
        expect(
            [
                ("/api//evil.example/a?b", "http://localhost:8080//evil.example/a?b"),
                ("/api/\\evil.example", "http://localhost:8080/\\evil.example"),
                ("/api/\t/evil.example", "http://localhost:8080/\t/evil.example"),
                ("https://bank.example/api//evil.example", "http://localhost:8080//evil.example"),
                ("/api/a//evil.example", "/a//evil.example"),
            ], by: try map("https://bank.example/api"))
    }

    @Test("an upstream that gets the caller's Host is also known by that name")
    func aliases() throws {
        let told = Origin(scheme: .https, host: "localhost", port: 8080)
        expect(
            [
                ("https://localhost:8080/api/a", "http://localhost:8080/a"),
                ("https://bank.example/api/a", "http://localhost:8080/a"), ("http://localhost:8080/api/a", nil),
                ("https://localhost/api/a", nil), ("https://localhost:8080/login", nil),
            ], by: try map("https://bank.example/api/", aliases: [told]))
    }

    @Test("an address becomes local only if the listener's routes lead it back to the same place")
    func routes() throws {
        let router = Router(
            routes: [
                Router.Route(path: "/accounts/", methods: ["GET"], upstream: "bank"),
                Router.Route(path: "/post/", methods: ["POST"], upstream: "bank"),
                Router.Route(path: "/bank/", upstream: "bank", stripsPrefix: true),
                Router.Route(path: "/secret/", users: [7], upstream: "vault", stripsPrefix: true),
                Router.Route(host: "ledger.localhost", upstream: "ledger"),
                Router.Route(path: "/ann/", upstream: "ann", stripsPrefix: true),
                Router.Route(path: "/bob/", upstream: "bob", stripsPrefix: true),
            ], fallback: "other")
        let bank = "https://bank.example/"
        let places = [
            try place("bank", bank), try place("bank", bank), try place("bank", bank, prefix: "/bank"),
            try place("vault", "https://vault.example/", prefix: "/secret"),
            try place("ledger", "https://ledger.example/l", host: "ledger.localhost"),
            try place("ann", "https://shared.example/", prefix: "/ann"),
            try place("bob", "https://shared.example/", prefix: "/bob"), try place("other", "https://other.example/"),
        ]
        func map(_ here: Int, method: String = "GET", user: UInt32? = nil, authority: String = "localhost:8080")
            -> ReverseMapping
        {
            ReverseMapping(
                authority: Array(authority.utf8), here: places[here], router: router,
                methods: method == "GET" ? ["GET"] : ["GET", method], user: user, elsewhere: { places })
        }
        let shared: [Row] = [
            ("https://bank.example/accounts/1", "http://localhost:8080/accounts/1"),
            ("https://bank.example/else", "http://localhost:8080/bank/else"), ("/else", "/bank/else"),
            ("/accounts/1", nil),
            ("https://other.example/x?y", "http://localhost:8080/x?y"),
            ("https://other.example/accounts/", nil), ("https://vault.example/x", nil),
            ("https://ledger.example/l/x?y", "http://ledger.localhost:8080/x?y"), ("https://ledger.example/x", nil),
            ("https://shared.example/x", nil), ("https://nobody.example/x", nil),
        ]
        expect(shared, by: map(0))
        // The upstream of the response is tried first.
        expect(
            shared.dropFirst().filter { $0.said != "/accounts/1" } + [
                ("https://bank.example/accounts/1", "http://localhost:8080/bank/accounts/1"),
                ("/post/1", "/bank/post/1"),
            ], by: map(2))
        expect([("/post/1", nil)], by: map(0, method: "POST"))
        expect([("https://vault.example/x", "http://localhost:8080/secret/x")], by: map(0, user: 7))
        expect([("https://shared.example/x", "http://localhost:8080/bob/x"), ("/x", "/bob/x")], by: map(6))
        // For another host, the ledger gets what no earlier route matches.
        expect(
            [
                ("/l/x", "/x"), ("https://ledger.example/l/x", "http://Ledger.localhost/x"), ("/l/bank/x", nil),
                ("https://bank.example/x", "http://Ledger.localhost/bank/x"), ("https://other.example/x", nil),
            ], by: map(4, authority: "Ledger.localhost"))
    }

    @Test("the routes are searched for a limited number of foreign addresses of a response")
    func many() throws {
        let other = try place("other", "https://other.example/")
        let map = ReverseMapping(
            authority: Array("localhost".utf8), here: try place("bank", "https://bank.example/", prefix: "/p"),
            router: Router(routes: [Router.Route(path: "/p", upstream: "bank", stripsPrefix: true)], fallback: "other"),
            elsewhere: { [other] })
        for _ in 0..<ReverseMapping.mostSearches {
            expect([("https://other.example/x", "http://localhost/x")], by: map)
        }
        expect([("https://other.example/x", nil), ("https://bank.example/x", "http://localhost/p/x")], by: map)
    }

    @Test("no reference crashes the mapping", arguments: 0..<40)
    func anything(seed: Int) throws {
        var generator = SplitMix(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1)
        let pieces = [
            "https", "http", ":", "//", "/", "bank.example", "@", "?", "#", "[", "]", "::1", "%", "2e", "..", ".",
            "api", "\\",
            ":443", " ", "\u{e4}", "",
        ]
        let map = try map("https://bank.example/api/", prefix: "/p")
        for _ in 0..<500 {
            let said = (0..<Int.random(in: 0..<9, using: &generator)).map { _ in
                pieces.randomElement(using: &generator) ?? ""
            }
            let bytes = Array(said.joined().utf8)
            guard let local = map.local(bytes.span, ByteRange(start: 0, end: bytes.count)) else { continue }
            // Every local address is at this host, or a path within the prefix.
            let text = String(decoding: local, as: UTF8.self)
            #expect(text.hasPrefix("http://localhost:8080/p/") || text.hasPrefix("/p/"), "\(said) \(text)")
        }
    }
}

@Test(
    "the address in a Refresh field is found as browsers find it",
    arguments: [
        ("5; url=/next", "/next"), ("0;URL=https://a/b?c;d", "https://a/b?c;d"), (" 5 , Url = '/a b' x", "/a b"),
        ("5;url=\"/a", "/a"), ("5; /next", "/next"), ("5 /next", "/next"), ("1.5;url=x", "x"), ("5;url=", nil),
        ("5;url", "url"), ("5;url x", "url x"), ("5", nil), ("5;", nil), ("", nil), ("url=/x", nil), ("x;url=/x", nil),
        ("5x;url=/x", nil), ("5;url=''", ""), ("5;url='", ""), (";url=/x", nil), ("5;urls=/x", "urls=/x"),
    ] as [(String, String?)])
func refreshTargets(value: String, target: String?) {
    let bytes = Array("..\(value)..".utf8)
    let range = RefreshTarget.range(bytes.span, ByteRange(start: 2, end: bytes.count - 2))
    #expect(range.map { bytes.span.text($0) } == target)
    let beyond = RefreshTarget.range(bytes.span, ByteRange(start: 2, end: bytes.count + 2))
    #expect(beyond == nil)
}
