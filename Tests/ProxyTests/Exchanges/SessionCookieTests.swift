// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import TestSupport
import Testing

@Suite("Cookies of sessions")
struct SessionCookieTests {
    /// A login that wins the cookie `sid`, and an upstream that says `fields` with every answer and notes the cookies it gets.
    private func proxy(answering fields: String = "") throws -> (TestProxy, AnsweringUpstream, @Sendable () -> [String])
    {
        let notes = Notes()
        let upstream = try AnsweringUpstream { head, _ in
            let lines = head.split(separator: "\r\n").filter { $0.lowercased().hasPrefix("cookie:") }
            notes.add(lines.joined(separator: "|"))
            return answer("200 OK", "in", fields)
        }
        let url = try #require(WebURL("http://127.0.0.1:\(upstream.port)/login"))
        let login = Authenticator.scripted(port: upstream.port, trigger: .ahead, isAhead: true) { _, _, conversation in
            var jar = CookieJar()
            _ = jar.store("sid=one; Path=/; HttpOnly", from: url, now: conversation.now())
            _ = jar.store("deep=two; Path=/deep", from: url, now: conversation.now())
            return Session(cookies: SessionCookies(jar))
        }
        return (try TestProxy(.bank(port: upstream.port, logins: [login])), upstream, { notes.all })
    }

    @Test("session cookies are sent where they belong, in one field with the caller's")
    func merged() throws {
        let (proxy, upstream, seen) = try proxy()
        _ = try proxy.fetch(get("/"))
        _ = try proxy.fetch(get("/deep/er", "Cookie: a=1\r\nCookie: b=2\r\n"))
        #expect(seen() == ["Cookie: sid=one", "Cookie: a=1; b=2; deep=two; sid=one"])
        _ = upstream
    }

    @Test("a caller's cookie with the name of a session cookie is replaced")
    func overridden() throws {
        let (proxy, upstream, seen) = try proxy()
        _ = try proxy.fetch(get("/", "Cookie: sid=forged; a=1; sid=again\r\n"))
        #expect(seen() == ["Cookie: a=1; sid=one"])
        _ = upstream
    }

    @Test("renewed session cookies are kept and used, and callers' cookies pass")
    func renewed() throws {
        let (proxy, upstream, seen) = try proxy(
            answering: "Set-Cookie: sid=new; Path=/\r\nSet-Cookie: theme=dark; Path=/\r\n")
        let (head, _) = try proxy.fetch(get("/"))
        #expect(!head.contains("sid="))
        #expect(head.contains("theme=dark"))
        _ = try proxy.fetch(get("/"))
        #expect(seen() == ["Cookie: sid=one", "Cookie: sid=new"])
        _ = upstream
    }
}
