// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("What a session's cookies make of others")
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
        #expect(cookies.merged(with: [line], for: url, now: 0) == Array("\(line); sid=own".utf8))
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
        // Removed, and set again by an answer that was late.
        #expect(cookies.take("sid=; Path=/; Max-Age=0", from: url, now: 0))
        #expect(cookies.take("sid=new; Path=/app", from: url, now: 0))
    }

    /// Cookies that a login at `/app/login` set: one by the path of its application, one for all of the server, and a token
    /// against forged requests.
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
                == "JSESSIONID=SHOP2; a=1; PORTAL=all; csrftoken=kept")
        #expect(
            try line(cookies, "/app/x", callers: ["JSESSIONID=SHOP2; a=1"])
                == "a=1; JSESSIONID=own; PORTAL=all; csrftoken=kept")
        #expect(try line(cookies, "/application", callers: ["JSESSIONID=3"])?.hasPrefix("JSESSIONID=3; ") == true)
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
        #expect(try line(cookies, "/app/", callers: ["JSESSIONID=mine"])?.hasPrefix("JSESSIONID=mine; ") == true)
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
        #expect(try line(cookies, "/", callers: ["csrftoken=mine"]) == "csrftoken=mine; PORTAL=all")
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
