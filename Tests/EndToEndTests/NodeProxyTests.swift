// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("A proxy in front of several nodes with the shipped configuration")
struct NodeProxyTests {
    private static let path = "/oauth/api/echo"

    private func expectAll(_ count: Int, _ proxy: NodeProxy, _ path: String = Self.path) async throws {
        try await withThrowingTaskGroup(of: Curl.self) { group in
            for number in 0..<count { group.addTask { try await proxy.curl("\(path)?n=\(number)") } }
            for try await answer in group { #expect(answer.status == 200, "\(answer.summary)\(proxy.log)") }
        }
    }

    @Test(
        "many callers at once on a cold session cost one login, and more of them none",
        arguments: NodeProxy.Kind.allCases)
    func cold(_ kind: NodeProxy.Kind) async throws {
        try await withNodes(kind) { bank, proxy in
            try await expectAll(20, proxy)
            try await expectAll(5, proxy)
            #expect(bank.record.tokens.count == 1)
        }
    }

    @Test(
        "one that asks the auth-request listener meets no challenge, and no request goes through countersign",
        arguments: NodeProxy.Kind.allCases)
    func authority(_ kind: NodeProxy.Kind) async throws {
        try await withNodes(kind) { bank, proxy in
            let answer = try await proxy.curl(Self.path, "--data", "some body", "-H", "Cookie: own=1")
            #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
            #expect(answer.field("via") == nil)
            try await expectAll(5, proxy)
            #expect(bank.record.challenges["oauth"] == nil)
        }
    }

    @Test(
        "a session that ends early is seen by no caller: each request is handed over once",
        arguments: NodeProxy.Kind.allCases)
    func ended(_ kind: NodeProxy.Kind) async throws {
        try await withNodes(kind) { bank, proxy in
            try await expectAll(1, proxy)
            bank.upstream.oauth.revokeTokens()
            let posted = try await proxy.curl("\(Self.path)?posted", "--data", "some body")
            #expect(posted.status == 200, "\(posted.summary)\(proxy.log)")
            // Once by the other proxy, and once by the listener that it was handed to, which had the same session.
            #expect((1...2).contains(bank.record.count("POST", Self.path, status: 401)))
            try await expectAll(5, proxy)
            #expect(bank.record.tokens.count == 2)
        }
    }

    @Test("a rejected credential is sent once, and each denial says why", arguments: NodeProxy.Kind.allCases)
    func rejected(_ kind: NodeProxy.Kind) async throws {
        try await withNodes(kind, secret: "wrong") { bank, proxy in
            for (code, status) in [("login-rejected", 502), ("login-latched", 503), ("login-latched", 503)] {
                let answer = try await proxy.curl(Self.path)
                #expect(answer.status == (kind == .haproxy ? status : 403), "\(answer.summary)\(proxy.log)")
                if kind == .haproxy {
                    #expect(answer.code == code && answer.text.contains("bank"), "\(answer.summary)")
                    #expect(answer.field("proxy-status")?.contains(code) == true)
                } else {
                    #expect(answer.field("countersign-code") == code)
                    #expect(answer.field("countersign-detail")?.contains("bank") == true)
                }
            }
            #expect(bank.record.count("POST", "/oauth/token") == 1)
            #expect(bank.record.count("GET", Self.path) == 0)
        }
    }

    @Test(
        "HAProxy asks the ordinary listener where the auth-request listener does not answer, and nothing goes up unasked"
    )
    func unanswered() async throws {
        @Sendable func ordinaryOnly(_ text: String) -> String {
            text.replacing("127.0.0.1:8081", with: "127.0.0.1:\(Ports.next())")
        }
        try await withNodes(.haproxy, changing: ordinaryOnly) { bank, proxy in
            let answer = try await proxy.curl(Self.path)
            #expect(answer.status == 200 && answer.field("via") == "1.1 countersign", "\(answer.summary)\(proxy.log)")
            let before = bank.record.count("GET", Self.path)
            await bank.stopDaemon()
            let refused = try await proxy.curl(Self.path)
            #expect(refused.status == 503, "\(refused.summary)\(proxy.log)")
            #expect(bank.record.count("GET", Self.path) == before)
        }
    }

    @Test(
        "Digest is signed for each request, the first one included, and none is handed over",
        arguments: NodeProxy.Kind.allCases)
    func digest(_ kind: NodeProxy.Kind) async throws {
        @Sendable func digest(_ text: String) -> String {
            let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
            return lines.filter { !$0.contains("token:") }.joined(separator: "\n")
                .replacing("scheme: bearer", with: "scheme: digest")
        }
        try await withNodes(kind, changing: digest) { bank, proxy in
            for number in 0..<4 {
                let answer = try await proxy.curl("/digest/a?n=\(number)", "--data", "some body")
                #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
                #expect(answer.field("via") == nil)
            }
            try await expectAll(10, proxy, "/digest/b")
            #expect(bank.record.wrongAnswers.isEmpty)
        }
    }
}
