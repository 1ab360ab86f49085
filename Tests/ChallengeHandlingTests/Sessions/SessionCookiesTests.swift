// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("What a session's cookies make of others")
struct SessionCookiesTests {
    private func cookies() throws -> (SessionCookies, WebURL) {
        let url = try #require(WebURL("https://www.example.com/"))
        var jar = CookieJar()
        jar.store("sid=own", from: url, now: 0)
        return (SessionCookies(jar), url)
    }

    @Test(
        "a caller's cookie of the same name gives way, however its value and its blanks are written",
        arguments: ["sid=forged", "sid=\u{301}forged", "sid =forged", " sid\t=forged", "sid", ";sid=;"])
    func forged(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.merged(with: [line], for: url, now: 0) == Array("sid=own".utf8))
    }

    @Test(
        "a caller's other cookies go out as they came",
        arguments: ["a=1", "a=b\u{37E}sid=x", "a=1; b=\u{301}", "a=1; \u{301}sid=x", "SID=1", "s id=1"])
    func others(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.merged(with: [line], for: url, now: 0) == Array("\(line); sid=own".utf8))
    }

    @Test(
        "no answer sets a session's cookie at a caller's",
        arguments: ["sid=new", "sid=\u{301}new", " sid =new; Path=/", "sid=; Max-Age=0", "sid=\u{7F}"])
    func kept(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(cookies.take(line, from: url, now: 0))
    }

    @Test("what else an answer sets passes", arguments: ["s id=1", "sid; Path=/", "=sid", "sid\u{301}=1", "SID=1", ""])
    func passing(_ line: String) throws {
        let (cookies, url) = try cookies()
        #expect(!cookies.take(line, from: url, now: 0))
    }
}
