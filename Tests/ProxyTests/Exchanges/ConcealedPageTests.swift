// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import HTTPTypes
import Proxy
import Synchronization
import TestSupport
import Testing

/// A server of one page whose login page comes in its place. Both have validators and parts, as Tomcat's have.
private final class PageServer: Sendable {
    static let page = "<p>" + String(repeating: "0123456789", count: 300) + "</p>"
    static let login = "<form action=j_security_check>" + String(repeating: "login ", count: 40) + "</form>"

    /// Number of the token that is accepted; 0 for none, and every request counts as logged in below `/open`.
    let valid = Atomic<Int>(1)
    /// True if requests for the whole page fail.
    let isBroken = Atomic<Bool>(false)
    let lines = Mutex<[String]>([])

    /// Requests that came, as `METHOD PATH STATUS`.
    var requests: [String] { lines.withLock { $0 } }

    func respond(_ head: String) -> String {
        let words = head.prefix { $0 != "\r\n" }.split(separator: " ")
        let isIn = head.contains("Bearer t\(valid.load(ordering: .acquiring))\r\n") || words[1].hasPrefix("/open")
        let (isFile, isForm) = (words[1].hasSuffix(".bin"), words[1].hasSuffix("/form"))
        let whole = isIn && !isForm ? Self.page : Self.login
        var (status, body, more) = ("200 OK", whole, "")
        let tag = isIn && !isForm ? "\"page\"" : "\"login\""
        func field(_ name: String) -> String? {
            head.split(separator: "\r\n").first { $0.hasPrefix("\(name): ") }.map {
                String($0.dropFirst(name.count + 2))
            }
        }
        if isBroken.load(ordering: .acquiring), field("Range") == nil, words[0] == "GET" {
            (status, body) = ("500 Internal Server Error", "")
        } else if let match = field("If-Match"), match != tag {
            (status, body) = ("412 Precondition Failed", "no")
        } else if field("If-None-Match") == tag || field("If-Modified-Since") != nil && field("If-None-Match") == nil {
            (status, body) = ("304 Not Modified", "")
        } else if let range = field("Range"), field("If-Range") ?? tag == tag,
            let first = Int(range.dropFirst(6).prefix { $0 != "-" })
        {
            if first < whole.utf8.count {
                (status, body) = ("206 Partial Content", String(whole.dropFirst(first)))
                more = "Content-Range: bytes \(first)-\(whole.utf8.count - 1)/\(whole.utf8.count)\r\n"
            } else {
                (status, body, more) = (
                    "416 Range Not Satisfiable", "", "Content-Range: bytes */\(whole.utf8.count)\r\n"
                )
            }
        }
        lines.withLock { $0.append("\(words[0]) \(words[1]) \(status.prefix(3))") }
        let type = isIn && isFile ? "application/octet-stream" : "text/html"
        if !status.hasPrefix("304") { more += "Content-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\n" }
        return "HTTP/1.1 \(status)\r\nETag: \(tag)\r\n\(more)\r\n\(words[0] == "HEAD" ? "" : body)"
    }
}

@Suite("Answers that may conceal a login page, on their way")
struct ConcealedAnswerTests {
    /// Conditions of requests, and the status with which the page answers them.
    static let conditions: [(fields: String, method: String, status: Int)] = [
        ("", "HEAD", 200), ("Range: bytes=100-\r\n", "GET", 206), ("Range: bytes=1000-\r\n", "GET", 206),
        ("Range: bytes=9000-\r\n", "GET", 416), ("If-None-Match: \"login\"\r\n", "GET", 200),
        ("If-None-Match: \"page\"\r\n", "GET", 304), ("If-Modified-Since: x\r\n", "GET", 304),
        ("If-None-Match: \"login\"\r\n", "HEAD", 200), ("If-Match: \"page\"\r\n", "GET", 200),
        ("If-Match: \"login\"\r\n", "GET", 412), ("Range: bytes=100-\r\nIf-Range: \"page\"\r\n", "GET", 206),
        ("Range: bytes=100-\r\nIf-Range: \"login\"\r\n", "GET", 200),
    ]

    private let server = PageServer()

    /// Returns a proxy whose logins bring the tokens t1, t2 and so on. `confirm` is asked if a session still works.
    private func proxy(
        confirm: (@Sendable () -> SessionConfirmation)? = nil, fails: Bool = false
    ) throws -> (TestProxy, AnsweringUpstream) {
        let upstream = try AnsweringUpstream { [server] head, _ in server.respond(head) }
        let counter = LoginCounter()
        let login = Authenticator(
            name: "bank", trigger: .detected(GatewayDetector(.jSecurityCheck)), isAhead: false,
            key: SessionKey(
                origin: Origin(scheme: .http, host: "127.0.0.1", port: upstream.port), challenge: "bank",
                credential: "pin"), credentials: ["pin"], confirmsSessions: confirm != nil
        ) { _ in
            PageLogin(fails: fails, counter: counter, answer: confirm ?? { .over })
        }
        return (try TestProxy(.bank(port: upstream.port, logins: [login])), upstream)
    }

    private struct PageLogin: SessionLogin {
        let fails: Bool
        let counter: LoginCounter
        let answer: @Sendable () -> SessionConfirmation

        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            let number = counter.next()
            if fails { throw .failed }
            return .bearer("t\(number)")
        }

        func confirm(_ held: Session, _ conversation: Conversation) async -> SessionConfirmation { answer() }
    }

    private func send(
        _ fields: String, _ method: String = "GET", _ path: String = "/page", to proxy: TestProxy
    ) throws -> (head: String, body: String) {
        let caller = try proxy.connect()
        try caller.send("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n")
        if method == "HEAD" { return (try caller.head(), "") }
        return try caller.message()
    }

    /// Returns what a caller with a session gets from the server itself.
    private func direct(_ fields: String, _ method: String, _ path: String = "/open") -> (head: String, body: String) {
        let answer = PageServer().respond("\(method) \(path) HTTP/1.1\r\n\(fields)\r\n")
        let head = answer.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false)
        return (head[0] + "\r\n\r\n", String(head[1]))
    }

    private func expectSame(
        _ got: (head: String, body: String), _ condition: (fields: String, method: String, status: Int),
        location: SourceLocation = #_sourceLocation
    ) {
        let wanted = direct(condition.fields, condition.method)
        #expect(
            got.head.hasPrefix("HTTP/1.1 \(condition.status) "), "\(condition): \(got.head)", sourceLocation: location)
        #expect(got.body == wanted.body, "\(condition)", sourceLocation: location)
        for line in wanted.head.split(separator: "\r\n").dropFirst() {
            #expect(got.head.contains("\(line)\r\n"), "\(condition): \(line)", sourceLocation: location)
        }
    }

    @Test("a request with a condition gets the page's answer without a session", arguments: conditions.indices)
    func cold(_ index: Int) throws {
        let condition = Self.conditions[index]
        let (proxy, upstream) = try proxy()
        expectSame(try send(condition.fields, condition.method, to: proxy), condition)
        #expect(proxy.log.count == 1)
        withExtendedLifetime(upstream) {}
    }

    @Test(
        "a request with a condition gets the page's answer after the session has ended", arguments: conditions.indices)
    func ended(_ index: Int) throws {
        let condition = Self.conditions[index]
        let (proxy, upstream) = try proxy()
        #expect(try proxy.fetch(get("/page")).body == PageServer.page)
        server.valid.store(2, ordering: .releasing)
        // A moment later: longer than a proof counts.
        proxy.pass(.seconds(3))
        expectSame(try send(condition.fields, condition.method, to: proxy), condition)
        #expect(proxy.log.count == 2)
        withExtendedLifetime(upstream) {}
    }

    @Test("a part and 416 are confirmed even a moment after the login", arguments: [1, 2, 3, 10])
    func atOnce(_ index: Int) throws {
        let condition = Self.conditions[index]
        let (proxy, upstream) = try proxy()
        #expect(try proxy.fetch(get("/page")).body == PageServer.page)
        server.valid.store(2, ordering: .releasing)
        expectSame(try send(condition.fields, condition.method, to: proxy), condition)
        #expect(proxy.log.count == 2)
        withExtendedLifetime(upstream) {}
    }

    @Test("unmodified pages cost one look in two seconds, and other types none")
    func costs() throws {
        let (proxy, upstream) = try proxy()
        #expect(try proxy.fetch(get("/page")).body == PageServer.page)
        proxy.pass(.seconds(3))
        for _ in 0..<2 { _ = try send("If-None-Match: \"page\"\r\n", to: proxy) }
        proxy.settle()
        let before = server.requests.count
        for _ in 0..<10 { _ = try send("If-None-Match: \"page\"\r\n", to: proxy) }
        for _ in 0..<10 { _ = try send("", "HEAD", to: proxy) }
        for _ in 0..<10 { _ = try send("Range: bytes=7-\r\n", "GET", "/file.bin", to: proxy) }
        #expect(server.requests.count == before + 30)
        #expect(proxy.log.count == 1)
        withExtendedLifetime(upstream) {}
    }

    @Test("a page that needs no login is served by HEAD while the login fails")
    func open() throws {
        let (proxy, upstream) = try proxy(fails: true)
        expectSame(try send("", "HEAD", "/open", to: proxy), Self.conditions[0])
        let refused = try send("", "HEAD", to: proxy)
        #expect(refused.head.hasPrefix("HTTP/1.1 502 "), "\(refused.head)")
        withExtendedLifetime(upstream) {}
    }

    @Test("a page that always has the form costs no login while the session works")
    func always() throws {
        let (proxy, upstream) = try proxy { .stillGood }
        #expect(try proxy.fetch(get("/page")).body == PageServer.page)
        proxy.pass(.seconds(3))
        for _ in 0..<3 {
            let answer = try send("Range: bytes=10-\r\n", "GET", "/form", to: proxy)
            #expect(answer.head.hasPrefix("HTTP/1.1 206 ") && answer.body == PageServer.login.dropFirst(10))
        }
        #expect(proxy.log.count == 1)
        withExtendedLifetime(upstream) {}
    }

    @Test("a part passes only if the server says what its page is")
    func unknown() throws {
        let (proxy, upstream) = try proxy()
        #expect(try proxy.fetch(get("/page")).body == PageServer.page)
        server.isBroken.store(true, ordering: .releasing)
        proxy.pass(.seconds(3))
        let part = try send("Range: bytes=10-\r\n", to: proxy)
        #expect(part.head.hasPrefix("HTTP/1.1 502 ") && part.body.contains("\"code\":\"login-failed\""))
        expectSame(try send("", "HEAD", to: proxy), Self.conditions[0])
        withExtendedLifetime(upstream) {}
    }
}
