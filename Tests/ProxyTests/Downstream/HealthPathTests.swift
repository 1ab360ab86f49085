// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Glibc
import HTTPWire
import Proxy
import Synchronization
import TestSupport
import Testing

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
