// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("A session's cookies and other Set-Cookie lines")
struct SessionCookiesTests {
    private func cookies() throws -> (SessionCookies, WebURL) {
        let url = try #require(WebURL("https://www.example.com/"))
        var jar = CookieJar()
        jar.store("sid=own", from: url, now: 0)
        return (SessionCookies(jar), url)
    }

    @Test(
        "a caller's cookie with the name of a session's cookie is dropped, however it is written",
        arguments: ["sid=forged", "sid=\u{301}forged", "sid =forged", " sid\t=forged", "sid", ";sid=;"])
    func forged(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.merged(with: [line], for: url, now: 0) == Array("sid=own".utf8))
    }

    @Test(
        "a caller's other cookies are sent unchanged",
        arguments: ["a=1", "a=b\u{37E}sid=x", "a=1; b=\u{301}", "a=1; \u{301}sid=x", "SID=1", "s id=1"])
    func others(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.merged(with: [line], for: url, now: 0) == Array("sid=own; \(line)".utf8))
    }

    @Test(
        "no response sets a session's cookie at a caller",
        arguments: ["sid=new", "sid=\u{301}new", " sid =new; Path=/", "sid=; Max-Age=0", "sid=\u{7F}"])
    func kept(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.take(line, from: url, now: 0))
    }

    @Test("the last sixty-four former values of a session's cookies are withheld")
    func formerBound() throws {
        let (cookies, url) = try cookies()
        for number in 1...64 { #expect(cookies.take("sid=new\(number); Path=/", from: url, now: 0)) }
        #expect(cookies.take("sid=own; Path=/app", from: url, now: 0))
        #expect(cookies.take("sid=new65; Path=/", from: url, now: 0))
        #expect(!cookies.take("sid=own; Path=/app", from: url, now: 0))
        #expect(cookies.take("sid=new1; Path=/app", from: url, now: 0))
    }

    @Test("a value that the session had before its renewal reaches no caller under another path either")
    func former() throws {
        let (cookies, url) = try cookies()
        #expect(cookies.take("sid=new; Path=/", from: url, now: 0))
        #expect(cookies.take("sid=own; Path=/app", from: url, now: 0))
        #expect(!cookies.take("sid=other; Path=/app", from: url, now: 0))
        // Removed, and set again by a late answer.
        #expect(cookies.take("sid=; Path=/; Max-Age=0", from: url, now: 0))
        #expect(cookies.take("sid=new; Path=/app", from: url, now: 0))
    }

    /// Returns the cookies that a login at `/app/login` set: one for the application's path, one for the whole server,
    /// and a forgery token.
    private func application() throws -> SessionCookies {
        var jar = CookieJar()
        for line in ["JSESSIONID=own; Path=/app", "PORTAL=all; Path=/; Secure", "csrftoken=kept; Path=/"] {
            jar.store(line, from: try url("/app/login"), now: 0)
        }
        jar.pass(names: CookieJar.doubleSubmitNames)
        return SessionCookies(jar)
    }

    private func url(_ path: String) throws -> WebURL { try #require(WebURL("https://www.example.com\(path)")) }

    private func line(_ cookies: SessionCookies, _ path: String, callers: [String] = []) throws -> String? {
        cookies.merged(with: callers, for: try url(path), now: 0).map { String(decoding: $0, as: UTF8.self) }
    }

    @Test("another path's cookie with the name of a session's cookie goes to the caller only")
    func otherPath() throws {
        let cookies = try application()
        #expect(!cookies.take("JSESSIONID=SHOP5; Path=/shop", from: try url("/shop/"), now: 0))
        #expect(!cookies.take("JSESSIONID=SHOP6", from: try url("/shop/cart"), now: 0), "its default path is /shop")
        #expect(try line(cookies, "/shop/") == "PORTAL=all; csrftoken=kept")
        #expect(
            try line(cookies, "/shop/", callers: ["JSESSIONID=SHOP2; a=1"])
                == "PORTAL=all; csrftoken=kept; JSESSIONID=SHOP2; a=1")
        #expect(
            try line(cookies, "/app/x", callers: ["JSESSIONID=SHOP2; a=1"])
                == "JSESSIONID=own; PORTAL=all; csrftoken=kept; a=1")
        #expect(try line(cookies, "/application", callers: ["JSESSIONID=3"])?.hasSuffix("; JSESSIONID=3") == true)
    }

    @Test("another domain's cookie with the name of a session's cookie goes to the caller")
    func otherDomain() throws {
        let cookies = try application()
        #expect(!cookies.take("JSESSIONID=x; Path=/app; Domain=example.com", from: try url("/app/"), now: 0))
        #expect(try line(cookies, "/app/") == "JSESSIONID=own; PORTAL=all; csrftoken=kept")
        #expect(cookies.take("JSESSIONID=new; Path=/app; Domain=www.example.com", from: try url("/app/"), now: 0))
        #expect(try line(cookies, "/app/") == "JSESSIONID=new; PORTAL=all; csrftoken=kept")
    }

    @Test("a Set-Cookie with the session's name, domain and path renews the session, from any address")
    func renewal() throws {
        let cookies = try application()
        #expect(cookies.take("JSESSIONID=new; Path=/app; HttpOnly", from: try url("/elsewhere"), now: 0))
        #expect(cookies.take("JSESSIONID=newer", from: try url("/app/x"), now: 0), "its default path is /app")
        #expect(try line(cookies, "/app/") == "JSESSIONID=newer; PORTAL=all; csrftoken=kept")
    }

    @Test("a session's cookie that the server removes and sets again in its place reaches no caller")
    func removal() throws {
        let cookies = try application()
        #expect(cookies.take("JSESSIONID=; Path=/app; Max-Age=0", from: try url("/app/"), now: 0))
        #expect(try line(cookies, "/app/", callers: ["JSESSIONID=mine"])?.hasSuffix("; JSESSIONID=mine") == true)
        #expect(cookies.take("JSESSIONID=next; Path=/app", from: try url("/app/"), now: 0))
        #expect(try line(cookies, "/app/") == "JSESSIONID=next; PORTAL=all; csrftoken=kept")
        #expect(!cookies.take("JSESSIONID=; Path=/shop; Max-Age=0", from: try url("/shop/"), now: 0))
    }

    @Test(
        "an ambiguous Set-Cookie with a session's name reaches no caller and changes nothing",
        arguments: [
            "JSESSIONID=own; Path=/other", "JSESSIONID=deep", "JSESSIONID=x; Domain=example.org", "JSESSIONID=\u{7F}",
            "PORTAL=all; Path=/deep", "PORTAL=rotated", "PORTAL=all; Domain=example.com; Path=/",
        ])
    func doubtful(_ setCookie: String) throws {
        let cookies = try application()
        #expect(cookies.take(setCookie, from: try url("/app/deep/er"), now: 0))
        #expect(try line(cookies, "/app/deep/er") == "JSESSIONID=own; PORTAL=all; csrftoken=kept")
    }

    @Test("a plaintext response cannot renew a Secure cookie, nor set it at the caller")
    func weaker() throws {
        let cookies = try application()
        let clear = try #require(WebURL("http://www.example.com/"))
        #expect(cookies.take("PORTAL=evil; Path=/", from: clear, now: 0))
        #expect(try line(cookies, "/")?.hasPrefix("PORTAL=all") == true)
    }

    @Test(
        "a double-submit token reaches the caller that it was set for, whose own value goes up in place of the kept one"
    )
    func doubleSubmit() throws {
        let cookies = try application()
        #expect(try line(cookies, "/", callers: ["csrftoken=mine"]) == "PORTAL=all; csrftoken=mine")
        for setCookie in ["csrftoken=next; Path=/", "csrftoken=kept; Path=/", "csrftoken=; Path=/; Max-Age=0"] {
            #expect(!cookies.take(setCookie, from: try url("/"), now: 0))
        }
        #expect(try line(cookies, "/") == "PORTAL=all; csrftoken=kept", "no caller's value is kept for another")
    }

    @Test(
        "other cookies in a response are passed to the caller",
        arguments: ["s id=1", "sid; Path=/", "=sid", "sid\u{301}=1", "SID=1", ""])
    func passing(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(!cookies.take(line, from: url, now: 0))
    }
}

@Suite("A worker's view of a session's cookies")
struct SessionCookieViewTests {
    private let origin = Origin(scheme: .https, host: "www.example.com")

    private func url(_ path: String) -> WebURL { WebURL(origin: origin, path: path) }

    /// Returns the cookies that a login at `/app/login` set.
    private func cookies(_ lines: String..., passing: Set<String> = []) -> SessionCookies {
        var jar = CookieJar()
        for line in lines { jar.store(line, from: url("/app/login"), now: 0) }
        jar.pass(names: passing)
        return SessionCookies(jar)
    }

    private func line(_ view: SessionCookieView, _ path: String, now: Int64 = 0) -> CookieLine {
        view.line(to: origin, path: path.utf8.span, now: now)
    }

    private func text(_ view: SessionCookieView, _ path: String, now: Int64 = 0) -> String? {
        line(view, path, now: now).field?.revealText()
    }

    @Test("a cookie view sends the session's current cookies for every path, time and caller")
    func same() {
        let cookies = cookies(
            "JSESSIONID=own; Path=/app", "PORTAL=all; Path=/; Secure", "csrftoken=kept; Path=/",
            passing: CookieJar.doubleSubmitNames)
        let view = SessionCookieView(cookies)
        var generator = SplitMix(state: 7)
        for number in 0..<500 {
            let path = ["/", "/app", "/app/x", "/shop/y"].randomElement(using: &generator) ?? "/"
            let own = ["JSESSIONID=mine", "a=1; csrftoken=mine", ""].randomElement(using: &generator) ?? ""
            let now = Int64(number) * 300
            if number % 5 == 0 {
                let life = ["", "; Max-Age=1", "; Max-Age=0"].randomElement(using: &generator) ?? ""
                _ = view.take("JSESSIONID=\(number); Path=/app\(life)", from: url("/app/"), now: now)
            }
            let lines = own.isEmpty ? [] : [own]
            let expected = cookies.merged(with: lines, for: url(path), now: now)
            let line = line(view, path, now: now)
            #expect(line.merged(with: lines.map { Array($0.utf8) }) == expected)
            if own.isEmpty { #expect(line.field?.revealBytes() == expected) }
        }
    }

    @Test("a cookie view shares a line between paths with the same cookies")
    func once() {
        let view = SessionCookieView(cookies("a=1; Path=/app", "b=2; Path=/"))
        let (application, portal) = (line(view, "/app/x"), line(view, "/"))
        #expect(application.field?.revealText() == "a=1; b=2")
        #expect(portal.field?.revealText() == "b=2")
        for path in ["/app", "/app/", "/app/y/z"] { #expect(line(view, path) === application) }
        for path in ["/apple", "/shop/app", ""] { #expect(line(view, path) === portal) }
    }

    @Test("a cookie view caches a few lines, and makes dropped ones again")
    func bounded() {
        let view = SessionCookieView(
            cookies("a=1; Path=/a", "b=2; Path=/b", "c=3; Path=/c", "d=4; Path=/d", "e=5; Path=/e"))
        let paths = ["/a", "/b", "/c", "/d", "/e"]
        let first = paths.map { line(view, $0) }
        for _ in 0..<3 {
            #expect(paths.map { text(view, $0) } == ["a=1", "b=2", "c=3", "d=4", "e=5"])
        }
        #expect(zip(paths, first).contains { line(view, $0) !== $1 })
        #expect(line(view, "/e") === line(view, "/e"))
    }

    @Test("an expired cookie disappears from a cookie view, and the others remain")
    func expiry() {
        let view = SessionCookieView(cookies("short=1; Path=/; Max-Age=2", "long=2; Path=/; Max-Age=9"))
        #expect(text(view, "/", now: 1_999) == "short=1; long=2")
        #expect(text(view, "/", now: 2_000) == "long=2")
        #expect(text(view, "/", now: 9_000) == nil)
    }

    @Test("a renewed cookie is sent with the next request of every worker")
    func renewal() {
        let cookies = cookies("sid=1; Path=/")
        let views = (0..<3).map { _ in SessionCookieView(cookies) }
        #expect(views.map { text($0, "/") } == ["sid=1", "sid=1", "sid=1"])
        #expect(views[1].take("sid=2; Path=/", from: url("/"), now: 0))
        #expect(views.map { text($0, "/") } == ["sid=2", "sid=2", "sid=2"])
        #expect(views[2].take("sid=; Path=/; Max-Age=0", from: url("/"), now: 0))
        #expect(views.map { text($0, "/") } == [nil, nil, nil])
    }

    @Test("a cookie view keeps its line if only the expiry changes, and applies the new expiry")
    func sliding() {
        let view = SessionCookieView(cookies("sid=1; Path=/; Max-Age=2"))
        let first = line(view, "/")
        #expect(view.take("sid=1; Path=/; Max-Age=5", from: url("/"), now: 1_000))
        #expect(line(view, "/", now: 5_999) === first)
        #expect(text(view, "/", now: 6_000) == nil)
        #expect(view.take("sid=2; Path=/", from: url("/"), now: 6_000))
        #expect(text(view, "/", now: 6_000) == "sid=2")
    }

    @Test("a cookie view for another origin sends only the cookies that match it")
    func origins() {
        let view = SessionCookieView(
            cookies("own=1; Path=/", "all=2; Path=/; Domain=example.com", "tls=3; Path=/; Secure"))
        #expect(text(view, "/") == "own=1; all=2; tls=3")
        let sister = Origin(scheme: .https, host: "api.example.com")
        #expect(view.line(to: sister, path: "/".utf8.span, now: 0).field?.revealText() == "all=2")
        let clear = Origin(scheme: .http, host: "www.example.com")
        #expect(view.line(to: clear, path: "/".utf8.span, now: 0).field?.revealText() == "own=1; all=2")
        #expect(text(view, "/") == "own=1; all=2; tls=3")
    }
}
