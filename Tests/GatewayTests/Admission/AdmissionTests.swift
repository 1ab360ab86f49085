// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import Gateway

@Suite("Admission")
struct AdmissionTests {
    private func decide(
        _ request: String, router: Router = Router(fallback: "bank"), users: Set<UInt32>? = nil,
        allowsBrowsers: Bool = false, user: UInt32? = nil
    ) throws -> Admission.Verdict {
        let plan = ListenerPlan(
            name: "test", service: .proxy, router: router, hosts: HostPolicy(names: ["bank.example"]), users: users,
            allowsBrowsers: allowsBrowsers)
        let bytes = Array(request.utf8)
        var parser = RequestHeadParser()
        let outcome = parser.parse(bytes.span)
        #expect(outcome == .complete(length: bytes.count))
        return Admission.decide(parser.head, in: bytes.span, plan: plan, user: user)
    }

    private func status(_ request: String, allowsBrowsers: Bool = false) throws -> Int {
        switch try decide(request, allowsBrowsers: allowsBrowsers) {
        case .admitted: 200
        case .answered: 204
        case .refused(let reply): reply.status
        }
    }

    private func head(_ fields: String, method: String = "GET", host: String = "localhost") -> String {
        "\(method) / HTTP/1.1\r\nHost: \(host)\r\n\(fields)\r\n"
    }

    @Test("a host that is not served is 421, also in an absolute target, which counts before Host")
    func hosts() throws {
        #expect(try status(head("", host: "evil.example")) == 421)
        #expect(try status("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n") == 421)
        #expect(try status("GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n") == 200)
        #expect(try status("GET / HTTP/1.0\r\n\r\n") == 200)
        #expect(try status("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n") == 421)
    }

    @Test(
        "what a browser sends on behalf of another site is 403, unless the listener allows it",
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
        ])
    func crossSite(fields: String) throws {
        #expect(try status(head(fields)) == 403)
        #expect(try status(head(fields), allowsBrowsers: true) == 200)
    }

    @Test(
        "what a page of this host sends, and what programs send, is let in",
        arguments: [
            "", "Sec-Fetch-Site: same-origin\r\n", "Sec-Fetch-Site: none\r\n", "Origin: http://localhost:3000\r\n",
            "Origin: http://[::1]:8080\r\n", "Origin: https://bank.example\r\n", "Origin: http://127.0.0.1\r\n",
            "Origin: HTTP://LocalHost:3000\r\n", "Origin: http://app.localhost\r\n", "Origin: http://bank.example.\r\n",
            "Sec-Fetch-Site: same-site\r\n", "Sec-Fetch-Site: NONE\r\nOrigin: http://localhost\r\n",
        ])
    func sameSite(fields: String) throws {
        #expect(try status(head(fields)) == 200)
    }

    @Test("CONNECT and TRACE are 405, after the host was looked at")
    func methods() throws {
        #expect(try status(head("", method: "TRACE")) == 405)
        #expect(try status("CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 405)
        #expect(try status("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost\r\n\r\n") == 421)
        #expect(try status(head("", method: "trace")) == 200)
    }

    @Test("an expectation that nobody knows is 417")
    func expectation() throws {
        #expect(try status(head("Expect: 100-Continue\r\n")) == 200)
        #expect(try status(head("Expect: 200-ok\r\n")) == 417)
        #expect(try status(head("Expect: 100-continue\r\nExpect: 100-continue\r\n")) == 417)
    }

    @Test(
        "a request that has come through here as often as a loop would is 508",
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
        "OPTIONS that may go no further is answered here, and one that does not say so clearly is 400",
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

    @Test("HEAD with a body is 400")
    func headWithBody() throws {
        #expect(try status(head("Content-Length: 1\r\n", method: "HEAD")) == 400)
        #expect(try status(head("Transfer-Encoding: chunked\r\n", method: "HEAD")) == 400)
        #expect(try status(head("Content-Length: 0\r\n", method: "HEAD")) == 200)
    }

    @Test("a listener for certain users refuses others and callers that nobody knows")
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

    @Test("routes are asked with the host in lower case and without its port, and the path without its query")
    func routing() throws {
        let router = Router(
            routes: [Router.Route(host: "Bank.localhost.", path: "/a", users: [7], upstream: "up")], fallback: nil)
        let request = "GET /a?b HTTP/1.1\r\nHost: BANK.localhost:80\r\n\r\n"
        guard case .admitted(let destination) = try decide(request, router: router, user: 7) else {
            Issue.record("refused")
            return
        }
        #expect(destination == .init(upstream: "up", route: 0))
        // The dot at its end is the root's, and makes no other name of it.
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
