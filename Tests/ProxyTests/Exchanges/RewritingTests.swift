// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

/// Redirects and cookies through a whole proxy.
@Suite("Answers that name their upstream")
struct RewritingTests {
    /// An upstream that answers with those fields; UP stands for its authority, PORT for what the caller's X-Port says.
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

    @Test("addresses become local ones by the host that the caller used, spelled as they were otherwise")
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
        // An absolute target counts before Host, and who names no host has used our address.
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

    @Test("an upstream that is told the caller's host is understood when it names itself by that")
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

    @Test("a cookie comes back to the upstream under the name that it was set by")
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
