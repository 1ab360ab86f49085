// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import HTTPWire
import TestSupport
import Testing

@testable import Proxy

/// Redirects and cookies through a whole proxy.
@Suite("Answers that name their upstream")
struct RewritingTests {
    /// Returns an upstream that answers with `fields`. UP stands for its authority, PORT for the caller's X-Port.
    private func upstream(_ fields: String) throws -> AnsweringUpstream {
        try AnsweringUpstream { head, _ in
            let host = head.split(separator: "\r\n").first { $0.hasPrefix("Host: ") }?.dropFirst(6) ?? ""
            let port = head.split(separator: "\r\n").first { $0.hasPrefix("X-Port: ") }?.dropFirst(8) ?? ""
            return answer("302 Found", "", fields.replacing("UP", with: host).replacing("PORT", with: port))
        }
    }

    private func fields(_ head: String) -> [String] {
        head.split(separator: "\r\n").dropFirst().map(String.init)
            .filter { line in !["Content-Length", "Date", "Via"].contains { line.hasPrefix($0) } }
    }

    @Test("addresses become local by the host that the caller used, and are otherwise unchanged")
    func addresses() throws {
        let upstream = try upstream(
            "Location: http://UP/api/a?b=c#d\r\nCONTENT-LOCATION:  //UP/api/x \r\nRefresh: 5; url='http://UP/api/y'\r\n"
                + "X-Link: http://UP/api/\r\n")
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/"))
        for host in ["localhost", "LocalHost:\(proxy.port)", "[::1]:99", "bank.localhost:"] {
            let head = try proxy.fetch("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n").head
            #expect(
                fields(head) == [
                    "Location: http://\(host)/a?b=c#d", "CONTENT-LOCATION:  http://\(host)/x",
                    "Refresh: 5; url='http://\(host)/y'", "X-Link: http://127.0.0.1:\(upstream.port)/api/",
                ])
        }
        // An absolute target overrides Host, and a caller without a host has used our address.
        let absolute = try proxy.fetch("GET http://a.localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n").head
        #expect(fields(absolute).first == "Location: http://a.localhost/a?b=c#d")
        let hostless = try proxy.fetch("GET / HTTP/1.0\r\n\r\n").head
        #expect(fields(hostless).first == "Location: http://127.0.0.1:\(proxy.port)/a?b=c#d")
    }

    @Test("a route's prefix is put back, also from one upstream to another of the same listener")
    func routes() throws {
        let ledger = try upstream("Location: /l/home\r\nSet-Cookie: a=b; Path=/l; Secure\r\n")
        let bank = try upstream("Location: http://127.0.0.1:\(ledger.port)/l/x\r\nSet-Cookie: a=b; Path=/\r\n")
        let router = Router(
            routes: [Router.Route(path: "/ledger/", upstream: "ledger", stripsPrefix: true)], fallback: "bank")
        let plan = UpstreamPlan(
            name: "ledger",
            base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: ledger.port), path: "/l/"))
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: .proxy(router))],
                upstreams: [.bank(port: bank.port), plan]))
        #expect(
            fields(try proxy.fetch(get("/")).head) == [
                "Location: http://localhost/ledger/x", "Set-Cookie: a=b; Path=/",
            ])
        #expect(
            fields(try proxy.fetch(get("/ledger/y")).head) == [
                "Location: /ledger/home", "Set-Cookie: a=b; Path=/ledger",
            ])
    }

    @Test("an address with the caller's host is mapped if the upstream gets that host")
    func passedHost() throws {
        let upstream = try upstream("Location: http://UP/api/a\r\nContent-Location: http://localhost:PORT/api/b\r\n")
        for policy in [ForwardingPolicy(host: .pass), ForwardingPolicy(host: .pass, caller: .forwarded)] {
            let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/", forwarding: policy))
            #expect(
                fields(try proxy.fetch(get("/", "X-Port: \(upstream.port)\r\n")).head) == [
                    "Location: http://localhost/a", "Content-Location: http://localhost/b",
                ])
        }
    }

    @Test("a cookie returns to the upstream under its original name")
    func cookies() throws {
        let upstream = try AnsweringUpstream { head, _ in
            let cookies = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("cookie:") }
            return answer(
                "200 OK", cookies.joined(separator: "|"), "Set-Cookie: __Host-sid=1; Path=/; Secure; HttpOnly\r\n")
        }
        let proxy = try TestProxy(.bank(port: upstream.port, path: "/api/"))
        let first = try proxy.fetch(get("/"))
        #expect(fields(first.head) == ["Set-Cookie: countersign-__Host-sid=1; Path=/; HttpOnly"])
        let next = try proxy.fetch(get("/", "cookie: a=b; countersign-__Host-sid=1\r\nCookie: c=d\r\n"))
        #expect(next.body == "Cookie: a=b; __Host-sid=1; c=d", "one line of several (RFC 6265 §5.4)")
    }
}

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
        "a cookie that every caller stores is forwarded unchanged",
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
        "attributes that keep a cookie from a plain-HTTP caller are removed, and all others are unchanged",
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

    @Test("an IP address as a cookie's domain matches only itself")
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
        "only the prefix that was added to a cookie's name is removed on the way back",
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

    @Test("no cookie crashes either mapping, and both together restore its name", arguments: 0..<40)
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
            // Only a name that already has our prefix does not come back unchanged.
            if !first.hasPrefix("countersign-") && !first.hasPrefix(" ") && !first.hasPrefix("\t") {
                #expect(back == first, "\(text)")
            }
        }
    }
}

@Suite("Names of a connection's ends in Forwarded")
struct CallerFieldsTests {
    @Test(
        "an element of Forwarded quotes values that are not tokens",
        arguments: [
            (SocketName.ipv4("127.0.0.1", port: 5), "localhost", "for=127.0.0.1;host=localhost;proto=http"),
            (.ipv4("127.0.0.1", port: 5), "localhost:80", #"for=127.0.0.1;host="localhost:80";proto=http"#),
            (.ipv6("::1", port: 5), "[::1]:80", #"for="[::1]";host="[::1]:80";proto=http"#),
            (.nameless, "bank.localhost", "for=unknown;host=bank.localhost;proto=http"),
            (.nameless, nil, "for=unknown;proto=http"),
        ] as [(SocketName, String?, String)])
    func element(peer: SocketName, host: String?, expected: String) {
        #expect(CallerFields.element(for: peer, host: host.map { Array($0.utf8) }) == Array(expected.utf8))
    }

    @Test("both ends of a connection have names, over IPv4 and IPv6, and Unix sockets have none")
    func names() throws {
        for (family, host) in [(AF_INET, "127.0.0.1"), (AF_INET6, "::1")] {
            let listener = socket(family, Int32(SOCK_STREAM.rawValue), 0)
            let caller = socket(family, Int32(SOCK_STREAM.rawValue), 0)
            defer {
                close(listener)
                close(caller)
            }
            var version4 = sockaddr_in()
            version4.sin_family = sa_family_t(AF_INET)
            version4.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var version6 = sockaddr_in6()
            version6.sin6_family = sa_family_t(AF_INET6)
            version6.sin6_addr = in6addr_loopback
            func act(_ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
                if family == AF_INET {
                    return unsafe withUnsafePointer(to: &version4) { pointer in
                        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            unsafe call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                        }
                    }
                }
                return unsafe withUnsafePointer(to: &version6) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        unsafe call($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                    }
                }
            }
            // The machine may not have IPv6.
            guard unsafe act({ unsafe bind(listener, $0, $1) }) == 0 else {
                #expect(family == AF_INET6)
                continue
            }
            #expect(listen(listener, 1) == 0)
            let number = try #require(
                SocketName.local(of: listener).authority?.split(separator: ":").last.flatMap { UInt16($0) })
            version4.sin_port = number.bigEndian
            version6.sin6_port = number.bigEndian
            unsafe #expect(act { unsafe connect(caller, $0, $1) } == 0)
            let name: SocketName = family == AF_INET ? .ipv4(host, port: number) : .ipv6(host, port: number)
            #expect(SocketName.peer(of: caller) == name)
            #expect(name.authority == (family == AF_INET ? "\(host):\(number)" : "[\(host)]:\(number)"))
        }
        var pair: [Int32] = [0, 0]
        #expect(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        #expect(SocketName.peer(of: pair[0]) == .nameless)
        #expect(SocketName.local(of: pair[0]).authority == nil)
        for descriptor in pair { close(descriptor) }
        #expect(SocketName.peer(of: -1) == .nameless)
        #expect(SocketName.ipv4("127.0.0.1", port: 80).authority == "127.0.0.1")
        #expect(SocketName.ipv6("::1", port: 80).authority == "[::1]")
    }
}
