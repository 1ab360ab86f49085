// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import TestSupport
import Testing

@Suite("Servers of HTTP/2 as others run them")
struct HTTP2ServerTests {
    /// Returns a port that was just free, and a folder for a server.
    private func place() throws -> (port: UInt16, folder: String) {
        let port = try ScriptedUpstream().port
        let folder = Certificates.path("server.\(port)")
        unsafe mkdir(folder, 0o755)
        return (port, folder)
    }

    private func wait(for port: UInt16) {
        #expect(blockUntil { (try? Peer(port: port)) != nil }, "the server listens")
    }

    private func plan(_ port: UInt16, tls: Bool = true) -> UpstreamPlan {
        .secure(port: port, scheme: tls ? .https : .http, connections: .trusting { if !tls { $0.version = .http2 } })
    }

    /// Sends `number` requests at once, and returns the number of answers for which `isGood` is true.
    private func count(_ number: Int, of request: String, at proxy: TestProxy, _ isGood: (String, String) -> Bool)
        throws
        -> Int
    {
        let callers = try (0..<number).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(request) }
        return try callers.count { caller in
            let (head, body) = try caller.message()
            return isGood(head, body)
        }
    }

    @Test("exchanges with nghttpd work, with TLS and without", arguments: [true, false])
    func nghttpd(tls: Bool) throws {
        let (port, folder) = try place()
        let body = String(repeating: "0123456789abcdef", count: 100_000)
        _ = try Helper.run([
            "/bin/sh", "-c", "yes 0123456789abcdef | tr -d '\\n' | head -c 1600000 >$0/large; echo ok >$0/small",
            folder,
        ])
        var arguments = ["nghttpd", "-d", folder, "-a", "127.0.0.1"]
        arguments +=
            tls
            ? ["\(port)", Certificates.path("server.key"), Certificates.path("server.pem")] : ["--no-tls", "\(port)"]
        let server = try Helper(arguments)
        wait(for: port)
        let proxy = try TestProxy(plan(port, tls: tls))
        let small = try count(50, of: get("/small"), at: proxy) { head, body in
            head.hasPrefix("HTTP/1.1 200 ") && body == "ok\n"
        }
        #expect(small == 50)
        #expect(try count(4, of: get("/large"), at: proxy) { $1 == body } == 4)
        #expect(try count(10, of: get("/none"), at: proxy) { head, _ in head.hasPrefix("HTTP/1.1 404 ") } == 10)
        server.end()
    }

    /// Starts nginx with HTTP/2 by ALPN and HTTP/1.1.
    private func nginx() throws -> (server: Helper, port: UInt16) {
        let (port, folder) = try place()
        let settings = """
            daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/error.log; worker_rlimit_core 0;
            events { worker_connections 512; }
            http {
                access_log off; keepalive_requests 7; client_body_temp_path \(folder)/a; proxy_temp_path \(folder)/b;
                fastcgi_temp_path \(folder)/c; uwsgi_temp_path \(folder)/d; scgi_temp_path \(folder)/e;
                server {
                    listen 127.0.0.1:\(port) ssl http2;
                    ssl_certificate \(Certificates.path("server.pem")); ssl_certificate_key \(Certificates.path("server.key"));
                    location /refused { return 413 "too long"; }
                    location /challenged {
                        add_header WWW-Authenticate Bearer always;
                        if ($http_authorization != "Bearer good") { return 401; }
                        return 200 "taken";
                    }
                    location / { return 200 "$server_protocol $request_method $http_te$http_connection$http_upgrade"; }
                }
            }
            """
        let server = try Helper([
            "/bin/sh", "-c", "printf '%s' '\(settings)' >$0/conf; exec nginx -p $0 -c $0/conf -e $0/error.log", folder,
        ])
        wait(for: port)
        return (server, port)
    }

    @Test("nginx may end a connection with GOAWAY after some requests without losing one")
    func goodOrder() throws {
        let (server, port) = try nginx()
        let proxy = try TestProxy(plan(port))
        let caller = try proxy.connect()
        for _ in 0..<30 {
            try caller.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            #expect(try caller.message().body == "HTTP/2.0 POST ")
        }
        for _ in 0..<5 { #expect(try count(30, of: get(), at: proxy) { $1 == "HTTP/2.0 GET " } == 30) }
        server.end()
    }

    @Test(
        "nginx' answer before the end of an upload is not lost, as it would be over HTTP/2",
        arguments: [false, true])
    func earlyAnswers(isChunked: Bool) throws {
        let (server, port) = try nginx()
        let login = Authenticator.scripted(port: port, trigger: .mobileFirst) { _, _, _ in .bearer("good") }
        let proxy = try TestProxy(.secure(port: port, connections: .trusting(), logins: [login]))
        let body = LongBody(count: 300_000)
        for round in 0..<5 {
            // In between there is an idle connection of HTTP/2 that could be used again.
            #expect(try proxy.fetch(get()).body == "HTTP/2.0 GET ")
            let caller = try proxy.connect()
            startThread(sending: post(body, inChunksOf: isChunked ? 10_000 : nil, to: "/refused"), to: caller)
            let (head, text) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 413 ") && text == "too long", "round \(round): \(head)")
            #expect(try count(5, of: get(), at: proxy) { $1 == "HTTP/2.0 GET " } == 5)
        }
        // Also the answer to a body of two bytes may come first.
        let short = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"
        #expect(try proxy.fetch(short).body == "HTTP/1.1 POST ")
        let caller = try proxy.connect()
        startThread(sending: post(LongBody(count: 60_000), inChunksOf: 7000, to: "/challenged"), to: caller)
        #expect(try caller.message().body == "taken")
        server.end()
    }
}

@Suite("Upstreams that break HTTP/2")
struct HTTP2FaultTests {
    @Test(
        "an HTTP/2 answer that breaks before or in its head is 502, and none of it is passed on",
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
        "an HTTP/2 answer that breaks in its body never looks complete",
        arguments: ["/break/0", "/break/2", "/break/8", "/cut-body", "/cut-body/length"])
    func inBody(path: String) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        let caller = try proxy.connect()
        // The last request of its connection, which would otherwise stay open after a 502 until it is idle for too long.
        try caller.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        // A reset, or an end before the last chunk or the last byte; 502 if nothing was sent yet.
        if let all = try? caller.readAll() ?? "" {
            let isRefused = all.hasPrefix("HTTP/1.1 502 ")
            #expect(isRefused || !all.hasSuffix("0\r\n\r\n") && !all.contains("Content-Length: 4\r\n"), "\(all)")
        }
        #expect(try proxy.fetch(get("/x")).body == "ok")
    }

    @Test(
        "a request that the upstream has not processed is sent again if that is safe",
        arguments: ["/refuse/", "/goaway/", "/cut/once/"].flatMap { [($0, false), ($0, true)] })
    func notTaken(path: String, isKept: Bool) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        if isKept { _ = try proxy.fetch(get("/x")) }
        let taken = try proxy.fetch(get("\(path)get"))
        #expect(taken.body == "taken", "\(taken)")
        #expect(try proxy.fetch(get("/seen\(path)get")).body == "2")
        let body = "POST \(path)post HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        #expect(try proxy.fetch(body).head.hasPrefix("HTTP/1.1 502 "))
        #expect(try proxy.fetch(get("/seen\(path)post")).body == "1")
    }

    @Test("a graceful end of an HTTP/2 connection loses no request")
    func goodOrder() throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        for number in 0..<6 {
            #expect(try proxy.fetch(get("/last")).body == "ok")
            let post = "POST /sink?\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
            #expect(try proxy.fetch(post).body.hasPrefix("0 "))
        }
    }

    @Test(
        "the next request succeeds after any event on an idle HTTP/2 connection",
        arguments: ["pings", "settings", "goaway", "close", "cut", "garbage"])
    func resting(kind: String) throws {
        let upstream = try H2Upstream()
        let proxy = try TestProxy(upstream.plan())
        let other = try TestProxy(upstream.plan())
        for (number, method) in ["POST", "GET"].enumerated() {
            #expect(try proxy.fetch(get("/rest/\(kind)")).body == "ok")
            // Returns when all of it has happened.
            #expect(try other.fetch(get("/until/\(number + 1)/rested")).body == "ok")
            proxy.settle()
            let answer = try proxy.fetch("\(method) /sink HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            #expect(answer.body.hasPrefix("0 "), "\(method) behind \(kind): \(answer)")
        }
    }

    @Test("a caller that leaves ends its own stream and no other")
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
