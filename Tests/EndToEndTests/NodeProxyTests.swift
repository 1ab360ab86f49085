// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Synchronization
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
            // Once by the other proxy, and once by the listener that the request was passed to, which had the same
            // session.
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

@Suite("A login page that a proxy in front of several nodes is redirected to")
struct NodeLoginPageTests {
    /// An application that sends every caller without a session to its login page, and whose sessions can be ended.
    private final class Application: Sendable {
        private struct State {
            var sessions: Set<String> = []
            var logins = 0
            var redirects = 0
        }
        private let state = Mutex(State())

        var logins: Int { state.withLock { $0.logins } }
        var redirects: Int { state.withLock { $0.redirects } }

        func endSessions() { state.withLock { $0.sessions = [] } }

        func respond(to request: FakeRequest) -> FakeResponse? {
            let cookie = request.fields.first { $0.name.lowercased() == "cookie" }?.value ?? ""
            switch (request.method, request.path) {
            case ("GET", "/login"):
                return FakeResponse(200, fields: [("Content-Type", "text/html")])
            case ("POST", "/login"):
                let session = state.withLock { state in
                    state.logins += 1
                    state.sessions.insert("s\(state.logins)")
                    return "s\(state.logins)"
                }
                return FakeResponse(303, fields: [("Set-Cookie", "sid=\(session); Path=/"), ("Location", "/app/")])
            case (_, let path) where path.hasPrefix("/app/"):
                let isKnown = state.withLock { state in
                    let isKnown = state.sessions.contains { cookie.contains("sid=\($0)") }
                    if !isKnown { state.redirects += 1 }
                    return isKnown
                }
                if !isKnown {
                    return FakeResponse(302, fields: [("Location", "/login?from=\(path)")])
                }
                if path == "/app/elsewhere" {
                    return FakeResponse(302, fields: [("Location", "/app/there"), ("Set-Cookie", "own=1")])
                }
                return FakeResponse(200, body: Array(cookie.utf8) + request.body)
            default: return nil
            }
        }
    }

    private static let challenge = """
        challenges:
          - name: bank
            upstream: bank
            gateway: none
            credential: bank
            detect: { status: 302, redirect-to: /login }
            login: { page: /login, url: /login, parameters: { user: "{client-id}" } }
            success: { cookie: sid }

        """

    /// `config/auth-requests.yaml` with a login page in place of the tokens.
    private static func configuration(_ text: String) -> String {
        guard let start = text.firstRange(of: "challenges:"), let end = text.firstRange(of: "credentials:") else {
            return text
        }
        return text[..<start.lowerBound] + challenge + "\n" + text[end.lowerBound...]
    }

    @Test(
        "is answered once, cold and when the session has ended; other redirects pass",
        arguments: [NodeProxy.Kind.envoy, .nginx])
    func redirect(_ kind: NodeProxy.Kind) async throws {
        let application = Application()
        try await withNodes(kind, isWhole: true, changing: Self.configuration) { bank, proxy in
            bank.upstream.override { application.respond(to: $0) }
            for login in 1...2 {
                for number in 0..<3 {
                    let answer = try await proxy.curl(
                        "/app/\(login)\(number)", "--data", "body", "-H", "Cookie: mine=1")
                    #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
                    #expect(answer.text == "sid=s\(login); mine=1body", "\(answer.summary)")
                }
                #expect(application.logins == login)
                application.endSessions()
            }
            _ = try await proxy.curl("/app/again")
            let passed = try await proxy.curl("/app/elsewhere")
            #expect(
                passed.status == 302 && passed.field("location")?.hasSuffix("/app/there") == true, "\(passed.summary)")
            #expect(passed.field("set-cookie")?.hasPrefix("own=1") == true)
            #expect(application.logins == 3)
            // For each of the two sessions that were ended: by the other proxy, and by the listener that it was handed over to.
            #expect(application.redirects == 4)
        }
    }
}

@Suite("What is told of an auth-request listener")
struct AuthRequestReportTests {
    @Test("the access log has the request in question, and not the auth request; denials with their code")
    func accessLog() async throws {
        try await withNodes(.nginx, changing: { $0 + "access-log: { format: json, to: \"${FOLDER}/access.log\" }\n" }) {
            bank, proxy in
            let answer = try await proxy.curl("/oauth/api/echo?s3cr3t", "--data", "some body")
            #expect(answer.status == 200, "\(answer.summary)\(proxy.log)")
            let denied = try await Curl.run(
                ["-H", "Host: evil.example", "http://127.0.0.1:\(proxy.port)/oauth/api/echo"], in: bank.folder)
            #expect(denied.status == 403 && denied.field("countersign-code") == "host-not-allowed", "\(denied.summary)")
            func records() -> [JSON] {
                bank.folder.text(of: "access.log").split(separator: "\n").compactMap { JSON(parsing: Array($0.utf8)) }
            }
            #expect(await eventually { records().count == 2 })
            let (passed, refused) = (try #require(records().first), try #require(records().last))
            #expect(passed["method"] == "POST" && passed["path"] == "/oauth/api/echo" && passed["status"] == 200)
            #expect(passed["host"] == "bank.example.com" && passed["upstream"] == "bank")
            #expect(refused["status"] == 403 && refused["code"] == "host-not-allowed")
        }
    }

    @Test("explain says which listener is one")
    func explain() async throws {
        let folder = try Folder()
        let arguments = [Binary.path, "explain", "--config", Repository.path(of: "config/auth-requests.yaml")]
        for (port, answersAuthRequests) in [(8081, true), (8080, false)] {
            let url = "http://127.0.0.1:\(port)/a"
            let text = try await Command.run(arguments + [url], in: folder)
            #expect(
                text.exit == 0 && text.output.contains("an auth-request listener") == answersAuthRequests, "\(text)")
            let json = try await Command.run(arguments + [url, "--json"], in: folder)
            #expect(
                JSON(parsing: Array(json.output.utf8))?["auth_requests"] == JSON.bool(answersAuthRequests), "\(json)")
        }
    }
}
