// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import TestSupport
import Testing

@Suite("Upstreams that break HTTP/2")
struct HTTP2FaultTests {
    @Test(
        "what breaks before the head, or breaks its rules, is 502 and nothing of it is passed on",
        arguments: JudgeTable("h2-faults").rows)
    func beforeHead(row: [String]) throws {
        let (path, code) = (row[0], row[1] == "-" ? "" : row[1])
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        for _ in 0..<2 {
            let (head, body) = try proxy.fetch(get(path))
            #expect(head.hasPrefix("HTTP/1.1 502 "), "\(head)")
            #expect(body.contains("\"code\":\"upstream-\(code)"), "\(body)")
            #expect(!(head + body).contains("injected"))
            #expect(try proxy.fetch(get("/x")).body == "ok")
        }
        proxy.expectNoConnections()
    }

    @Test(
        "what breaks in the body never looks complete",
        arguments: ["/break/0", "/break/2", "/break/8", "/cut-body", "/cut-body/length"])
    func inBody(path: String) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        let caller = try proxy.connect()
        // Its last request: after a 502 the connection would else stay open for as long as idle ones do.
        try caller.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        // A reset, or an end before the last chunk or the last byte; 502 where nothing had gone out yet.
        if let all = try? caller.readAll() ?? "" {
            let isRefused = all.hasPrefix("HTTP/1.1 502 ")
            #expect(isRefused || !all.hasSuffix("0\r\n\r\n") && !all.contains("Content-Length: 4\r\n"), "\(all)")
        }
        #expect(try proxy.fetch(get("/x")).body == "ok")
    }

    @Test(
        "a request that the upstream says it has not taken is sent again where that does no harm",
        arguments: [("/refuse/", false), ("/refuse/", true), ("/goaway/", false), ("/goaway/", true)])
    func notTaken(path: String, isKept: Bool) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        if isKept { _ = try proxy.fetch(get("/x")) }
        let taken = try proxy.fetch(get("\(path)get"))
        #expect(taken.body == "taken", "\(taken)")
        #expect(try proxy.fetch(get("/seen\(path)get")).body == "2")
        let body = "POST \(path)post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"
        #expect(try proxy.fetch(body).head.hasPrefix("HTTP/1.1 502 "))
        #expect(try proxy.fetch(get("/seen\(path)post")).body == "1")
    }

    @Test("a connection that the upstream ends in good order costs no request")
    func goodOrder() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        for number in 0..<6 {
            #expect(try proxy.fetch(get("/last")).body == "ok")
            let post = "POST /sink?\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"
            #expect(try proxy.fetch(post).body.hasPrefix("2 "))
        }
    }

    @Test(
        "whatever happens on a resting connection, the next request goes through",
        arguments: ["pings", "settings", "goaway", "close", "cut", "garbage"])
    func resting(kind: String) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        let other = try TestProxy(upstream.plan())
        for (number, method) in ["POST", "GET"].enumerated() {
            #expect(try proxy.fetch(get("/rest/\(kind)")).body == "ok")
            // Until all of it has happened.
            #expect(try other.fetch(get("/until/\(number + 1)/rested")).body == "ok")
            proxy.settle()
            let answer = try proxy.fetch("\(method) /sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
            #expect(answer.body.hasPrefix("2 "), "\(method) behind \(kind): \(answer)")
        }
    }

    @Test("a caller that goes away ends its stream and nobody else's")
    func cancelled() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        let staying = try proxy.connect()
        try staying.send(get("/until/1/end"))
        for number in 1...5 {
            let leaving = try proxy.connect()
            try leaving.send(get("/hang"))
            #expect(try proxy.fetch(get("/until/\(number)/hang")).body == "ok")
            leaving.reset()
        }
        #expect(try proxy.fetch(get("/end")).body == "ok")
        #expect(try staying.message().body == "ok")
        #expect(try proxy.fetch(get("/connections")).body == "1")
    }
}
