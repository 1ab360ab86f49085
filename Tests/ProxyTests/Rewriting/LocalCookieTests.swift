// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPWire
import TestSupport
import Testing

@testable import Proxy

@Suite("Cookies of the upstream as the caller gets them")
struct LocalCookieTests {
    private func local(
        _ cookie: String, host: String = "bank.example.com", base: String = "", prefix: String = ""
    ) -> String? {
        let place = MappedAddress(
            upstream: "bank", origin: Origin(scheme: .https, host: host), base: Array(base.utf8),
            prefix: Array(prefix.utf8))
        return LocalCookie.local(Array(cookie.utf8).span, from: place).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(
        "a cookie that any caller keeps goes as it came",
        arguments: [
            "a=b", "a=b; HttpOnly", "a=b; Path=/x; Max-Age=5; SameSite=Lax",
            "a=b;Expires=Wed, 21 Oct 2026 07:28:00 GMT ;",
            "", ";", "=", "a", "secure", "domain=bank.example.com", "a=b; Domain=other.example",
            "a=b; Domain=ank.example.com",
            "a=b; Domain=", "a=b; Domain", "a=b; SameSite=Strict", "a=\"Secure; x\"", "a=b; securely", "a=b; x=Secure",
            "x__Host-a=b", "a=__Host-b; HttpOnly", "a=b; Domain=x.bank.example.com",
        ])
    func untouched(cookie: String) {
        #expect(local(cookie) == nil)
    }

    @Test(
        "what keeps a cookie from a plain-HTTP caller goes, and all else stays byte for byte",
        arguments: [
            ("a=b; Secure", "a=b"), ("a=b;secure;HttpOnly", "a=b;HttpOnly"),
            ("a=b;  SECURE = 1 ;  X=\"y\" ", "a=b;  X=\"y\" "),
            ("a=b; SameSite=None; Secure", "a=b"), ("a=b; samesite = none ; Path=/", "a=b; Path=/"),
            ("a=b; Partitioned; Priority=High", "a=b; Priority=High"), ("Secure=1; Secure", "Secure=1"),
            ("a=b; Domain=bank.example.com", "a=b"), ("a=b; domain = .Example.COM ; Path=/x", "a=b; Path=/x"),
            ("a=b; Domain=com", "a=b"), ("a=b; Domain=other; Domain=example.com; HttpOnly", "a=b; HttpOnly"),
            ("a=b; Domain=example.com; Domain=", "a=b"),
            ("a=b; Domain=example.com; Domain=other; Secure", "a=b; Domain=example.com; Domain=other"),
            ("__Host-a=b; Secure; Path=/", "countersign-__Host-a=b; Path=/"),
            ("__secure-a=b; Secure", "countersign-__secure-a=b"),
            ("__Http-a=b; Secure; HttpOnly", "countersign-__Http-a=b; HttpOnly"),
            ("__Host-Http-a=b", "countersign-__Host-Http-a=b"),
        ])
    func attributes(cookie: String, expected: String) {
        #expect(local(cookie) == expected)
    }

    @Test("an address is a domain of its own only")
    func addresses() {
        #expect(local("a=b; Domain=127.0.0.1", host: "127.0.0.1") == "a=b")
        #expect(local("a=b; Domain=0.0.1", host: "127.0.0.1") == nil)
        #expect(local("a=b; Domain=localhost", host: "localhost") == "a=b")
    }

    @Test(
        "the path of the url is taken off, and what strip-prefix took is put back",
        arguments: [
            ("/api", "", "/api", "/"), ("/api", "", "/api/", "/"), ("/api", "", "/api/x/", "/x/"),
            ("/api", "", "/", "/"),
            ("/api/v1", "", "/api", "/"), ("/api/v1", "", "/api/", "/"), ("/api", "", "/apis", nil),
            ("/api", "", "/other", nil),
            ("/api/v1", "", "/api/v", nil), ("/api", "", "", nil), ("/api", "", "api", nil), ("", "/p", "/", "/p"),
            ("", "/p", "/x", "/p/x"), ("", "/p", "", nil), ("/api", "/p", "/", "/p"), ("/api", "/p", "/api", "/p"),
            ("/api", "/p", "/api/x", "/p/x"), ("/api", "/p", "/x", nil), ("", "", "/x", nil),
        ] as [(String, String, String, String?)])
    func paths(base: String, prefix: String, path: String, expected: String?) {
        let cookie = local("a=b; HttpOnly;  Path = \(path) ; X", base: base, prefix: prefix)
        #expect(cookie == expected.map { "a=b; HttpOnly;  Path = \($0); X" })
    }

    @Test(
        "a prefix that was put before a name goes on the way back, and only that",
        arguments: [
            ("countersign-__Host-a=b", "__Host-a=b"),
            ("x=y; countersign-__Secure-a=b;countersign-__host-c=d", "x=y; __Secure-a=b;__host-c=d"),
            ("x=countersign-__Host-a", nil), ("countersign-__Hose-a=b", nil), ("countersign-__", nil),
            ("countersign-__H", nil),
            ("Countersign-__Host-a=b", nil), ("x=y", nil), ("", nil), ("xcountersign-__Host-a=b", nil),
            ("countersign-__Host-a", "__Host-a"), ("a; ; countersign-__Http-a=b; ", "a; ; __Http-a=b; "),
        ] as [(String, String?)])
    func restored(cookies: String, expected: String?) {
        let restored = LocalCookie.restored(Array(cookies.utf8).span).map { String(decoding: $0, as: UTF8.self) }
        #expect(restored ?? cookies == expected ?? cookies)
    }

    @Test("no cookie makes either way fall over, and both ways make the name that it was", arguments: 0..<40)
    func anything(seed: Int) throws {
        var generator = SplitMix(state: UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1)
        let pieces = [
            ";", "=", " ", "Secure", "Path", "Domain", "/", "/api", "x", "SameSite", "None", "__Host-", "countersign-",
            "\t", ".",
            "bank.example.com", "\u{e4}",
        ]
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0..<12, using: &generator)).map { _ in
                pieces.randomElement(using: &generator) ?? ""
            }
            .joined()
            let cookie = local(text, base: "/api", prefix: "/p") ?? text
            let pair = cookie.split(separator: ";", omittingEmptySubsequences: false).first.map(String.init) ?? ""
            let back = LocalCookie.restored(Array(pair.utf8).span).map { String(decoding: $0, as: UTF8.self) } ?? pair
            let first = text.split(separator: ";", omittingEmptySubsequences: false).first.map(String.init) ?? ""
            // A name that has our prefix already is the one that does not come back as it was.
            if !first.hasPrefix("countersign-") && !first.hasPrefix(" ") && !first.hasPrefix("\t") {
                #expect(back == first, "\(text)")
            }
        }
    }
}
