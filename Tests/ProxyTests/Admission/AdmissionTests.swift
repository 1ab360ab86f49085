// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import Proxy

@Suite("Admission")
struct AdmissionTests {
    private func decide(
        _ request: String, router: Router = Router(fallback: "bank"), users: Set<UInt32>? = nil,
        browsers: BrowserRule = .refuse, user: UInt32? = nil, isUnixSocket: Bool = false
    ) throws -> Admission.Verdict {
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: router, hosts: HostPolicy(names: ["bank.example"]), users: users,
            browsers: browsers)
        let bytes = Array(request.utf8)
        var parser = RequestHeadParser()
        let outcome = parser.parse(bytes.span)
        #expect(outcome == .complete(length: bytes.count))
        return Admission.decide(parser.head, in: bytes.span, plan: plan, user: user, isUnixSocket: isUnixSocket)
    }

    private func status(
        _ request: String, browsers: BrowserRule = .refuse, router: Router = Router(fallback: "bank"),
        isUnixSocket: Bool = false
    ) throws -> Int {
        switch try decide(request, router: router, browsers: browsers, isUnixSocket: isUnixSocket) {
        case .admitted: 200
        case .answered: 204
        case .refused(let reply): reply.status
        }
    }

    private func head(_ fields: String, method: String = "GET", host: String = "localhost") -> String {
        "\(method) / HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    @Test("a host that is not served is 421, also in an absolute target, which overrides Host")
    func hosts() throws {
        #expect(try status(head("", host: "evil.example")) == 421)
        #expect(try status("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n") == 421)
        #expect(try status("GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n") == 200)
        #expect(try status("GET / HTTP/1.0\r\n\r\n") == 200)
        #expect(try status("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n") == 421)
    }

    @Test(
        "a browser's request for a page of another site is 403, unless the listener allows it",
        arguments: [
            "Sec-Fetch-Site: cross-site\r\n", "sec-fetch-site: Cross-Site\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: cross-site\r\n", "Origin: null\r\n",
            "Origin: https://evil.example\r\n", "Origin: http://localhost.evil.example\r\n", "Origin: \r\n",
            "Origin: http://localhost http://evil.example\r\n", "Origin: http://evil.example#localhost\r\n",
            "Origin: localhost\r\n", "Origin: http://localhost/path\r\n", "Origin: http://a@localhost\r\n",
            "Origin: http://[::2]\r\n", "Origin: file://\r\n",
            "Origin: http://localhost\r\nOrigin: http://evil.example\r\n", "Origin: http://localhost, null\r\n",
            "Origin: http://[::1]evil.example\r\n", "Origin: http://localhost:80:80\r\n", "Origin: http:///\r\n",
            "Origin: http://localhost:evil\r\n", "Origin: http:/localhost\r\n", "Origin: ://localhost\r\n",
            "Origin: NULL\r\n", "ORIGIN: http://evil.example\r\n",
            "Sec-Fetch-Site: cross-site, none\r\n", "Sec-Fetch-Site: \r\n", "Sec-Fetch-Site: else\r\n",
            // Another port of this machine, another name of it, another scheme.
            "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: same-site\r\nSec-Fetch-Mode: navigate\r\n",
            "Origin: http://localhost:3000\r\n", "Origin: https://localhost\r\n", "Origin: http://127.0.0.1\r\n",
            "Origin: http://app.localhost\r\n", "Origin: ftp://localhost\r\n", "Origin: http://bank.example\r\n",
            "Origin: chrome-extension://localhost\r\n",
            "Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost:3000\r\n",
            // Not what a browser sends when a user navigates.
            "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: no-cors\r\n",
            // Twice, though the same.
            "Origin: http://localhost\r\nOrigin: http://localhost\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Site: same-origin\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Dest: image\r\nSec-Fetch-Dest: document\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-User: ?1\r\nSec-Fetch-User: ?1\r\n",
            "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Mode: cors\r\n",
        ])
    func crossSite(fields: String) throws {
        #expect(try status(head(fields)) == 403)
        #expect(try status(head(fields), browsers: .allow) == 200)
    }

    @Test(
        "requests of the listener's own pages, of a user's navigation, and of programs are admitted",
        arguments: [
            "", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
            "Origin: http://localhost\r\n", "Origin: HTTP://LocalHost:80\r\n", "Origin: http://localhost.\r\n",
            "Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nOrigin: http://localhost\r\n",
            "Sec-Fetch-Site: NONE\r\nSec-Fetch-Mode: Navigate\r\nOrigin: http://localhost\r\n",
            // As fetch() of Node.js sends it, which is not a browser.
            "Sec-Fetch-Mode: cors\r\n", "Referer: http://evil.example/\r\n",
        ])
    func ownPages(fields: String) throws {
        #expect(try status(head(fields)) == 200)
    }

    @Test("the port of an Origin is that of the request's Host, 80 where none is written")
    func ports() throws {
        #expect(try status(head("Origin: http://localhost:8080\r\n", host: "localhost:8080")) == 200)
        #expect(try status(head("Origin: http://[::1]:8080\r\n", host: "[0:0::1]:8080")) == 200)
        #expect(try status(head("Origin: http://localhost\r\n", host: "localhost:8080")) == 403)
        #expect(try status(head("Origin: http://localhost:8081\r\n", host: "localhost:8080")) == 403)
        #expect(try status("GET / HTTP/1.0\r\nOrigin: http://localhost\r\n\r\n") == 403)
    }

    @Test("a CORS preflight is refused, and never takes a session upstream")
    func preflight() throws {
        let asked = "Access-Control-Request-Method: PUT\r\n"
        for fields in ["Origin: http://localhost:3000\r\n", "Origin: http://localhost\r\n", ""] {
            #expect(try status(head("\(fields)\(asked)", method: "OPTIONS")) == 403)
        }
        #expect(try status(head(asked)) == 200)
        #expect(try status(head("", method: "OPTIONS")) == 200)
        let rule = BrowserRule.origins(["http://localhost:3000"])
        #expect(try status(head("Origin: http://localhost:3000\r\n\(asked)", method: "OPTIONS"), browsers: rule) == 200)
        #expect(try status(head("Origin: http://localhost:3001\r\n\(asked)", method: "OPTIONS"), browsers: rule) == 403)
    }

    @Test("a list of origins admits their pages, and no others")
    func listedOrigins() throws {
        let rule = BrowserRule.origins(["https://app.example"])
        let cross = "Sec-Fetch-Site: cross-site\r\n"
        #expect(try status(head("\(cross)Origin: https://app.example\r\n"), browsers: rule) == 200)
        #expect(try status(head("Sec-Fetch-Site: same-origin\r\n"), browsers: rule) == 200)
        for fields in [
            cross, "Origin: https://app.example:8443\r\n", "Origin: http://app.example\r\n", "Origin: null\r\n",
            "Origin: https://app.example\r\nOrigin: https://app.example\r\n", "Origin: https://app.example.evil\r\n",
        ] { #expect(try status(head(fields), browsers: rule) == 403) }
    }

    @Test("over a Unix socket any host name is accepted, unless a route has a host")
    func unixSocket() throws {
        let request = head("", host: "x")
        #expect(try status(request) == 421)
        #expect(try status(request, isUnixSocket: true) == 200)
        let router = Router(routes: [Router.Route(host: "a.localhost", upstream: "up")], fallback: "bank")
        #expect(try status(request, router: router, isUnixSocket: true) == 421)
        #expect(try status(head("Origin: http://evil.example\r\n", host: "x"), isUnixSocket: true) == 403)
    }

    @Test(
        "methods that show a request's own fields or open a tunnel are 405 in any spelling",
        arguments: ["TRACE", "trace", "Trace", "TRACK", "track", "DEBUG", "Debug"])
    func shownMethods(method: String) throws {
        #expect(try status(head("", method: method)) == 405)
        #expect(try status(head("", method: method), browsers: .allow) == 405)
        #expect(try status(head("", method: "\(method)S")) == 200)
    }

    @Test("CONNECT and TRACE are 405, after the host was looked at")
    func methods() throws {
        #expect(try status(head("", method: "TRACE")) == 405)
        #expect(try status("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 405)
        #expect(try status(head("", method: "connect")) == 405)
        #expect(try status("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 421)
    }

    @Test("an unknown expectation is 417")
    func expectation() throws {
        #expect(try status(head("Expect: 100-Continue\r\n")) == 200)
        #expect(try status(head("Expect: 200-ok\r\n")) == 417)
        #expect(try status(head("Expect: 100-continue\r\nExpect: 100-continue\r\n")) == 417)
    }

    @Test(
        "a request with as many passes in Via as a loop is 508",
        arguments: [
            (Array(repeating: "1.1 countersign", count: 7), 200), (Array(repeating: "1.1 countersign", count: 8), 508),
            (Array(repeating: "1.1 countersign", count: 20), 508), (Array(repeating: "1.1 other", count: 20), 200),
            (Array(repeating: "HTTP/2 Countersign (a, \\), b)", count: 8), 508),
            (Array(repeating: "1.1 other (countersign, 1.1 countersign)", count: 8), 200),
            (Array(repeating: "1.1 countersign.example", count: 8), 200),
        ])
    func loop(passes: [String], expected: Int) throws {
        #expect(try status(head("Via: \(passes.joined(separator: ", "))\r\n")) == expected)
        #expect(try status(head(passes.map { "Via: \($0)\r\n" }.joined())) == expected)
        #expect(try status(head("Via:,, \(passes.joined(separator: " ,"))\r\nConnection: via\r\n")) == expected)
    }

    @Test(
        "OPTIONS with Max-Forwards 0 is answered by the proxy, and an invalid Max-Forwards is 400",
        arguments: [
            ("0", 204), ("00", 204), ("1", 200), ("99999999999999999999999", 200), ("", 400), ("-1", 400), ("+1", 400),
            ("1, 1", 400), ("0x1", 400), ("1 ", 200), ("1.0", 400),
        ])
    func maxForwards(value: String, expected: Int) throws {
        #expect(try status(head("Max-Forwards: \(value)\r\n", method: "OPTIONS")) == expected)
        #expect(try status(head("Max-Forwards: \(value)\r\n")) == 200)
        #expect(try status(head("Max-Forwards: 1\r\nMax-Forwards: 1\r\n", method: "OPTIONS")) == 400)
        #expect(try status(head("Max-Forwards: 0\r\n", method: "TRACE")) == 405)
        #expect(try status(head("Max-Forwards: 0\r\n", method: "OPTIONS", host: "evil.example")) == 421)
    }

    @Test("a HEAD request with a body is 400")
    func headWithBody() throws {
        #expect(try status(head("Content-Length: 1\r\n", method: "HEAD")) == 400)
        #expect(try status(head("Transfer-Encoding: chunked\r\n", method: "HEAD")) == 400)
        #expect(try status(head("Content-Length: 0\r\n", method: "HEAD")) == 200)
    }

    @Test("a listener with `users` refuses other users and unknown callers")
    func users() throws {
        guard case .admitted = try decide(head(""), users: [7], user: 7) else {
            Issue.record("refused")
            return
        }
        for user in [8, nil] as [UInt32?] {
            guard case .refused(let reply) = try decide(head(""), users: [7], user: user) else {
                Issue.record("admitted")
                return
            }
            #expect(reply.code == .callerNotAllowed)
        }
    }

    @Test("routes match the host in lower case without port, and the path without query")
    func routing() throws {
        let router = Router(
            routes: [Router.Route(host: "Bank.localhost.", path: "/a", users: [7], upstream: "up")], fallback: nil)
        let request = "GET /a?b HTTP/1.1\r\nHost: BANK.localhost:80\r\n\r\n"
        guard case .admitted(let destination) = try decide(request, router: router, user: 7) else {
            Issue.record("refused")
            return
        }
        #expect(destination == .init(upstream: "up", route: 0))
        // The final dot is the root's, and does not change the name.
        let rooted = "GET /a HTTP/1.1\r\nHost: bank.localhost.:80\r\n\r\n"
        guard case .admitted(destination) = try decide(rooted, router: router, user: 7) else {
            Issue.record("refused")
            return
        }
        guard case .refused(let hidden) = try decide(request, router: router),
            case .refused(let missing) = try decide(head(""), router: router)
        else {
            Issue.record("admitted")
            return
        }
        #expect(hidden.code == .callerNotAllowed)
        #expect(missing.code == .noRoute)
    }
}

@Suite("Challenges at paths that servers read differently")
struct CredentialReadingTests {
    /// Returns a proxy whose login applies below `/app/admin/` only.
    private func proxy(before upstream: AnsweringUpstream) throws -> TestProxy {
        let name = try #require(HTTPField.Name("X-Api-Key"))
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, _ in
            Session(fields: [InjectedField(name: name, value: Secret("s3cret"))])
        }
        var logins = Authenticators()
        logins.add(login, at: try LocationPattern("127.0.0.1:\(upstream.port)/app/admin/*"))
        let origin = Origin(scheme: .http, host: "127.0.0.1", port: upstream.port)
        return try TestProxy(UpstreamPlan(name: "bank", base: WebURL(origin: origin, path: "/app/"), logins: logins))
    }

    @Test(
        "a path that only some servers read as one of the challenge's is refused, and nothing goes upstream",
        arguments: [
            "/admin/%2e%2e/uploads/x", "/admin/..%2fuploads/x", "/admin/..;/uploads/x", "/admin/..%252fuploads/x",
            "/uploads/../admin/x", "/uploads/%2e%2e/admin/x", "//admin/x", "/admin;v=1/x", "/admin%2fx",
            "/../app/admin/x",
            "/admin/../../x",
        ])
    func refused(path: String) throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let (head, body) = try proxy(before: upstream).fetch(get(path))
        #expect(head.hasPrefix("HTTP/1.1 400 ") && body.contains("Write it plainly"), "\(body)")
    }

    @Test(
        "a path gets the challenge's credential if all readings match it, and none if no reading does")
    func passed() throws {
        let upstream = try AnsweringUpstream { head, _ in answer("200 OK", head) }
        let proxy = try proxy(before: upstream)
        for path in ["/admin/x", "/admin/a%2Fb", "/admin/a/../b", "/admin/a;v=1//b", "/admin/100%25"] {
            let body = try proxy.fetch(get(path)).body
            #expect(body.hasPrefix("GET /app\(path) ") && body.contains("X-Api-Key: s3cret"), "\(path)")
        }
        for path in ["/x", "/a%2Fb", "/a/../b", "/%61dministrator", "/.well-known/a"] {
            let body = try proxy.fetch(get(path)).body
            #expect(body.hasPrefix("GET /app\(path) ") && !body.contains("s3cret"), "\(path)")
        }
    }
}
