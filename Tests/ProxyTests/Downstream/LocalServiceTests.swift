// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import HTTPWire
import Proxy
import Synchronization
import TestSupport
import Testing

/// Service that answers with the request.
private struct Echo: LocalService {
    func answer(_ request: LocalRequest) -> LocalAnswer {
        let text = "\(request.method) \(request.path) \(request.query) \(request.isUnixSocket)"
        return LocalAnswer(status: 200, contentType: "text/plain", body: Array(text.utf8))
    }
}

@Suite("Answers of our own, and Unix sockets")
struct LocalServiceTests {
    private let path = "/tmp/countersign-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).sock"

    private func proxy(_ points: [ListenPoint], users: Set<UInt32>? = nil, isLocal: Bool = true) throws -> TestProxy {
        let plan = ListenerPlan(
            name: "admin", service: isLocal ? .local(Echo()) : .proxy, router: Router(fallback: "bank"),
            hosts: HostPolicy(), users: users)
        return try TestProxy(ProxyPlan(listeners: points.map { (point: $0, plan: plan) }, upstreams: []))
    }

    @Test("a local service gets method, path and query, and whether a Unix socket was used")
    func asked() throws {
        let proxy = try proxy([.tcp(host: "127.0.0.1", port: 0), .unix(path: path, mode: 0o600)])
        for (caller, isUnix) in try [(proxy.connect(), "false"), (Peer(path: path), "true")] {
            try caller.send(get("/a/b?c=d&e"))
            #expect(try caller.message().body == "GET /a/b c=d&e \(isUnix)")
            try caller.send(get("/"))
            #expect(try caller.message().body == "GET /  \(isUnix)")
            try caller.send("POST http://localhost?q HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab")
            #expect(try caller.message().body == "POST  q \(isUnix)")
            try caller.send("HEAD /h HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/after"))
            #expect(try caller.head().contains("Content-Length: 14\r\n") || isUnix == "true")
            #expect(try caller.message().body == "GET /after  \(isUnix)")
        }
    }

    @Test("a service is closed to names of other hosts")
    func hosts() throws {
        let proxy = try proxy([.tcp(host: "127.0.0.1", port: 0)])
        #expect(try proxy.fetch("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").head.hasPrefix("HTTP/1.1 421 "))
    }

    @Test("over a Unix socket a local service accepts any host name")
    func unixHosts() throws {
        let proxy = try proxy([.unix(path: path, mode: 0o600)])
        let caller = try Peer(path: path)
        try caller.send("GET /metrics HTTP/1.1\r\nHost: x.example\r\n\r\n")
        #expect(try caller.message().body == "GET /metrics  true")
        _ = proxy
    }

    @Test(
        "a service is closed to pages of other origins, and open to its own, to programs and to a person",
        arguments: [
            ("Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n", false),
            ("Sec-Fetch-Site: same-site\r\n", false),
            ("Origin: http://evil.example\r\n", false), ("Origin: http://localhost:1\r\n", false),
            ("Origin: null\r\n", false), ("", true), ("Sec-Fetch-Site: same-origin\r\n", true),
            ("Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n", true), ("Origin: http://localhost\r\n", true),
        ])
    func browsers(fields: String, isServed: Bool) throws {
        let proxy = try proxy([.tcp(host: "127.0.0.1", port: 0)])
        let (head, body) = try proxy.fetch(get("/metrics", fields))
        #expect(head.hasPrefix(isServed ? "HTTP/1.1 200 " : "HTTP/1.1 403 "))
        #expect(body.hasPrefix("GET /metrics") == isServed)
    }

    @Test("a Unix socket gets its configured permissions, and is removed with its proxy")
    func permissions() throws {
        var proxy: TestProxy? = try proxy([.unix(path: path, mode: 0o620)])
        var status = stat()
        #expect(unsafe stat(path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o620)
        _ = proxy
        proxy = nil
        #expect(unsafe stat(path, &status) != 0)
    }

    @Test("a Unix socket that a crash has left is replaced, but not one in use")
    func stale() throws {
        let descriptor = try ListenPoint.unix(path: path, mode: 0o600).open()
        #expect(throws: ListenError.self) { try ListenPoint.unix(path: path, mode: 0o600).open() }
        _ = close(descriptor)
        let proxy = try proxy([.unix(path: path, mode: 0o600)])
        let caller = try Peer(path: path)
        try caller.send(get())
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
        _ = proxy
    }

    @Test("a file at the path that is not a socket is kept")
    func foreignFile() throws {
        let file = unsafe fopen(path, "w")
        _ = unsafe file.map { unsafe fclose($0) }
        defer { _ = unsafe unlink(path) }
        #expect(throws: ListenError.self) { try ListenPoint.unix(path: path, mode: 0o600).open() }
        #expect(unsafe access(path, F_OK) == 0)
    }

    @Test(
        "a path that is not possible for a socket is reported",
        arguments: ["", "/nonexistent/x.sock", "/tmp/" + String(repeating: "x", count: 200)])
    func paths(path: String) {
        #expect(throws: ListenError.self) { try ListenPoint.unix(path: path, mode: 0o600).open() }
    }

    @Test("callers of a Unix socket are known by their uid")
    func users() throws {
        let allowed = try proxy([.unix(path: path, mode: 0o600)], users: [getuid()], isLocal: false)
        let caller = try Peer(path: path)
        try caller.send(get())
        // Admitted; its upstream does not exist.
        #expect(try caller.message().head.hasPrefix("HTTP/1.1 404 "))
        _ = allowed
        let other = path + "2"
        let closed = try proxy([.unix(path: other, mode: 0o600)], users: [getuid() + 1], isLocal: false)
        let stranger = try Peer(path: other)
        try stranger.send(get())
        #expect(try stranger.message().head.hasPrefix("HTTP/1.1 403 "))
        _ = closed
    }
}

@Suite("OPTIONS * that goes no further")
struct WhoAnswersTests {
    private struct Greeting: LocalService {
        func answer(_ request: LocalRequest) -> LocalAnswer {
            LocalAnswer(status: 200, contentType: "text/plain", body: Array("in".utf8))
        }
    }

    private static let request = "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\n\r\n"
    private static let services: [ListenerPlan.Service] = [.proxy, .authRequests, .local(Greeting())]

    private func ask(_ service: ListenerPlan.Service, _ request: String, users: Set<UInt32>? = nil) throws -> String {
        let upstream = try ScriptedUpstream()
        // No route matches.
        let plan = ListenerPlan(
            name: "test", service: service,
            router: Router(routes: [Router.Route(path: "/x/", upstream: "bank")], fallback: nil), hosts: HostPolicy(),
            users: users)
        let proxy = try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: plan)],
                upstreams: [.bank(port: upstream.port)]))
        return try proxy.fetch(request).head
    }

    @Test(
        "OPTIONS * with Max-Forwards 0 is answered by each kind of listener, with the program's name",
        arguments: [0, 1, 2])
    func answered(service: Int) throws {
        let head = try ask(Self.services[service], Self.request)
        #expect(head.hasPrefix("HTTP/1.1 200 "))
        #expect(head.contains("\r\nProxy-Status: countersign\r\n"))
    }

    @Test("OPTIONS * with Max-Forwards 0 is refused for unknown hosts and other users")
    func refused() throws {
        let foreign = Self.request.replacing("localhost", with: "evil.example")
        #expect(try !ask(.proxy, foreign).hasPrefix("HTTP/1.1 200 "))
        #expect(try ask(.proxy, Self.request, users: [4_294_967_294]).hasPrefix("HTTP/1.1 403 "))
    }
}

/// Admin service whose readiness a test sets.
private final class Readiness: LocalService {
    let status = Mutex(200)
    let asked = Mutex(0)

    func answer(_ request: LocalRequest) -> LocalAnswer {
        #expect(request.path == "/readyz" && request.query.isEmpty && !request.isUnixSocket)
        asked.withLock { $0 += 1 }
        return LocalAnswer(
            status: status.withLock { $0 }, contentType: "application/json", body: Array("{\"reasons\":[]}".utf8))
    }
}

@Suite("Health path of a listener")
struct HealthPathTests {
    private static let other = UInt32(getuid()) &+ 12_345

    /// Returns a proxy whose callers must be another user, and the targets that its upstream has received.
    private func proxy(
        _ readiness: Readiness, users: Set<UInt32>? = [other], service: ListenerPlan.Service = .proxy,
        before upstream: AnsweringUpstream
    ) throws -> TestProxy {
        let plan = ListenerPlan(
            name: "test", service: service, router: Router(fallback: "bank"), hosts: HostPolicy(), users: users,
            health: HealthPath("/health", of: readiness))
        return try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: plan)],
                upstreams: [.bank(port: upstream.port)]))
    }

    @Test("anybody gets the status of readyz without its text, under any Host, and nothing else")
    func status() throws {
        let readiness = Readiness()
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(readiness, before: upstream)
        for request in [
            "GET /health HTTP/1.1\r\nHost: 10.1.2.3:8081\r\nUser-Agent: kube-probe/1.30\r\n\r\n",
            "GET /health?verbose HTTP/1.1\r\nHost: pod.example\r\n\r\n", "GET /health HTTP/1.0\r\n\r\n",
            "OPTIONS /health HTTP/1.0\r\n\r\n",
        ] {
            let (head, body) = try proxy.fetch(request)
            #expect(head.hasPrefix("HTTP/1.1 200 ") && body.isEmpty, "\(request) \(head) \(body)")
            #expect(!head.lowercased().contains("content-type"), "\(head)")
        }
        let post = try proxy.fetch("POST /health HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
        #expect(post.head.hasPrefix("HTTP/1.1 405 ") && post.head.contains("Allow: GET, HEAD, OPTIONS"), "\(post)")
        for target in ["/", "/health/", "/healthz", "/%68ealth", "http://localhost/health"] {
            let refused = try proxy.fetch("GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
            #expect(refused.head.hasPrefix("HTTP/1.1 403 "), "\(target): \(refused.head)")
        }
        let elsewhere = try proxy.fetch("GET / HTTP/1.1\r\nHost: pod.example\r\n\r\n")
        #expect(elsewhere.head.hasPrefix("HTTP/1.1 421 "), "\(elsewhere.head)")
    }

    @Test("a flood of questions is one report a second, and a change is seen after it")
    func flood() async throws {
        let readiness = Readiness()
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(readiness, before: upstream)
        let caller = try proxy.connect()
        let question = "GET /health HTTP/1.1\r\nHost: a\r\n\r\n"
        for _ in 0..<50 {
            try caller.send(question)
            #expect(try caller.message().head.hasPrefix("HTTP/1.1 200 "))
        }
        #expect(readiness.asked.withLock { $0 } < 10)
        readiness.status.withLock { $0 = 503 }
        let isSeen = try await eventually {
            try caller.send(question)
            return try caller.message().head.hasPrefix("HTTP/1.1 503 ")
        }
        #expect(isSeen)
    }

    @Test("a page of another origin is refused, and an upstream's own path elsewhere is forwarded")
    func others() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Readiness(), users: nil, before: upstream)
        let page = try proxy.fetch(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\n\r\n"
        )
        #expect(page.head.hasPrefix("HTTP/1.1 403 "), "\(page.head)")
        #expect(try proxy.fetch(get("/healthz")).body == "in")
    }

    @Test("an auth-request listener hands out no fields there, and still asks for the user elsewhere")
    func authRequests() throws {
        let upstream = try AnsweringUpstream { _, _ in answer("200 OK", "in") }
        let proxy = try proxy(Readiness(), service: .authRequests, before: upstream)
        let health = try proxy.fetch("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(health.head.hasPrefix("HTTP/1.1 200 ") && !health.head.contains("Countersign-"), "\(health.head)")
        #expect(try proxy.fetch(get("/authority/x")).head.hasPrefix("HTTP/1.1 403 "))
    }
}
