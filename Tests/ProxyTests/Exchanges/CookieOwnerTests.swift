// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import Synchronization
import TestSupport
import Testing

@testable import ChallengeHandling

/// A login at `/app/login` has set `JSESSIONID` for `/app`, a name with a space, and a forgery token. Cookies that the
/// upstream sets later belong to the session, or to the caller that it answered.
@Suite("Owners of cookies by name, domain and path (RFC 6265 §5.3)")
struct CookieOwnerTests {
    private final class Traffic: Sendable {
        let cookies = Notes()
        let answers = Mutex<[String: String]>([:])
    }

    private let traffic = Traffic()
    private let upstream: AnsweringUpstream
    private let proxy: TestProxy

    init() throws {
        let traffic = traffic
        upstream = try AnsweringUpstream { head, _ in
            let lines = head.split(separator: "\r\n").map(String.init)
            let cookies = lines.filter { $0.lowercased().hasPrefix("cookie:") }
            traffic.cookies.add(cookies.joined(separator: "|"))
            let path = String(lines[0].split(separator: " ")[1])
            let set = traffic.answers.withLock { $0[path] } ?? ""
            return head.contains("\r\nUpgrade: echo\r\n") ? switching(to: "echo", set) : answer("200 OK", "in", set)
        }
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/app/login"))
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, conversation in
            var jar = CookieJar()
            for line in ["JSESSIONID=own; Path=/app", "my session=blank; Path=/app", "csrftoken=kept; Path=/app"] {
                _ = jar.store(line, from: url, now: conversation.now())
            }
            jar.pass(names: CookieJar.doubleSubmitNames)
            return Session(cookies: SessionCookies(jar))
        }
        proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
    }

    /// Makes the upstream set these cookies at `path`.
    private func set(_ lines: String..., at path: String) {
        let fields = lines.map { "Set-Cookie: \($0)\r\n" }.joined()
        traffic.answers.withLock { $0[path] = fields }
    }

    private func fetch(_ path: String, _ cookies: String = "") throws -> String {
        try proxy.fetch(get(path, cookies.isEmpty ? "" : "Cookie: \(cookies)\r\n")).head
    }

    private var last: String? { traffic.cookies.all.last }

    @Test("a cookie of another path goes to the caller that it was set for, and to no other")
    func otherPath() throws {
        set("JSESSIONID=SHOP5; Path=/shop", at: "/shop/")
        #expect(try fetch("/shop/").contains("\r\nSet-Cookie: JSESSIONID=SHOP5; Path=/shop\r\n"))
        _ = try fetch("/shop/")
        #expect(last == "", "another caller is not in the first one's shop")
        _ = try fetch("/shop/", "JSESSIONID=SHOP2")
        #expect(last == "Cookie: JSESSIONID=SHOP2")
        _ = try fetch("/app/x", "JSESSIONID=SHOP2")
        #expect(last == "Cookie: JSESSIONID=own; my session=blank; csrftoken=kept")
    }

    @Test("a renewal, a removal and what is set in its place are the session's")
    func renewal() throws {
        set("JSESSIONID=ROTATED; Path=/app; HttpOnly", at: "/app/renew")
        #expect(!(try fetch("/app/renew")).contains("ROTATED"))
        _ = try fetch("/app/x")
        #expect(last == "Cookie: JSESSIONID=ROTATED; my session=blank; csrftoken=kept")
        set("JSESSIONID=; Path=/app; Max-Age=0", "JSESSIONID=NEXT; Path=/app", at: "/app/end")
        #expect(!(try fetch("/app/end")).lowercased().contains("set-cookie"))
        _ = try fetch("/app/x", "JSESSIONID=mine")
        #expect(last == "Cookie: JSESSIONID=NEXT; my session=blank; csrftoken=kept")
    }

    @Test("a session's cookie whose name holds a blank is renewed, and not given to the caller")
    func blank() throws {
        set(
            "my session=ROTATED; Path=/app", " my session =AGAIN; Path=/app", "mysession=other; Path=/app", at: "/app/a"
        )
        let head = try fetch("/app/a")
        #expect(!head.contains("ROTATED") && !head.contains("AGAIN") && head.contains("mysession=other"))
        _ = try fetch("/app/x", "my session=forged; mysession=other")
        #expect(last == "Cookie: JSESSIONID=own; my session=AGAIN; csrftoken=kept; mysession=other")
    }

    @Test("a session's cookie that a 101 renews is used, and not given to the caller")
    func switched() throws {
        set("JSESSIONID=ROTATED; Path=/app", "theme=dark; Path=/", at: "/app/feed")
        let caller = try proxy.connect()
        try caller.send(upgrade("/app/feed"))
        let head = try caller.head()
        #expect(head.hasPrefix("HTTP/1.1 101 ") && head.contains("theme=dark") && !head.contains("ROTATED"))
        _ = try fetch("/app/x")
        #expect(last == "Cookie: JSESSIONID=ROTATED; my session=blank; csrftoken=kept")
    }

    @Test(
        "a double-submit token that an answer sets reaches its caller only, whose value goes up in place of the kept one"
    )
    func doubleSubmit() throws {
        set("csrftoken=NEXT; Path=/app", at: "/app/form")
        #expect(try fetch("/app/form").contains("\r\nSet-Cookie: csrftoken=NEXT; Path=/app\r\n"))
        #expect(last?.hasSuffix("; csrftoken=kept") == true)
        _ = try fetch("/app/form", "csrftoken=NEXT")
        #expect(last == "Cookie: JSESSIONID=own; my session=blank; csrftoken=NEXT")
        _ = try fetch("/app/form")
        #expect(last?.hasSuffix("; csrftoken=kept") == true, "no caller's token is kept for another")
    }

    @Test("fifty lines that try to be the session's cookie neither reach the caller nor push it out")
    func flood() throws {
        let lines = (0..<50).map { "Set-Cookie: JSESSIONID=\($0); Path=/app\r\n" }
        traffic.answers.withLock { $0["/app/deep/flood"] = lines.joined() + "Set-Cookie: JSESSIONID=deep\r\n" }
        #expect(!(try fetch("/app/deep/flood")).contains("JSESSIONID"))
        _ = try fetch("/app/x")
        #expect(last == "Cookie: JSESSIONID=49; my session=blank; csrftoken=kept")
    }

    @Test("several Cookie lines of a caller become one, with a session's cookies and without (RFC 6265 §5.4)")
    func oneLine() throws {
        let fields = "Cookie: a=1\r\nX: y\r\ncookie: b=2; c=3\r\n"
        _ = try proxy.fetch(get("/app/x", fields))
        #expect(last == "Cookie: JSESSIONID=own; my session=blank; csrftoken=kept; a=1; b=2; c=3")
        let plain = try TestProxy(.bank(port: upstream.port))
        _ = try plain.fetch(get("/x", fields + "Cookie: countersign-__Host-d=4\r\n"))
        #expect(last == "Cookie: a=1; b=2; c=3; __Host-d=4")
        _ = try plain.fetch(get("/x", "Cookie: a=1\r\nCookie:\r\n"))
        #expect(last == "Cookie: a=1")
    }
}
