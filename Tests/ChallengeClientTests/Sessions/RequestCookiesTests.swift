// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient

@Suite("The cookies of one request")
struct RequestCookiesTests {
    private let origin = Origin(scheme: .http, host: "a.example")

    private func session(_ cookies: String...) -> Session {
        var jar = CookieJar()
        for cookie in cookies { jar.store(cookie, from: WebURL(origin: origin, path: "/"), now: 0) }
        return Session(cookies: SessionCookies(jar))
    }

    /// The lines that a request to `target` gets whose caller sends `callers`.
    private func sent(
        _ sessions: [Session], to target: String = "/", callers: [String] = [], now: Int64 = 0
    ) throws -> [String] {
        let fields = SessionFields(sessions, limitsCodings: false)
        let cookies = RequestCookies(
            of: fields.cookies, injected: fields.cookieFields, to: origin, target: target.utf8.span, now: now)
        let sink = FieldSink()
        cookies.write(mergedWith: callers.map { Array($0.utf8) }, to: sink)
        var lines: [String] = []
        sink.forEachField { name, value in
            lines.append(
                "\(name.text(ByteRange(start: 0, end: name.count))): \(value.text(ByteRange(start: 0, end: value.count)))"
            )
        }
        return lines
    }

    @Test("a request without cookies of its own gets the session's as one line, and none where none goes")
    func alone() throws {
        let session = session("sid=1; Path=/", "app=2; Path=/app; Max-Age=3")
        #expect(try sent([session], to: "/app/x") == ["Cookie: app=2; sid=1"])
        #expect(try sent([session], to: "/app/x", now: 3_000) == ["Cookie: sid=1"])
        #expect(try sent([self.session("app=2; Path=/app")], to: "/") == [])
        #expect(try sent([]) == [])
    }

    @Test(
        "the path of a target ends at its query",
        arguments: [
            ("/?x=/app", "sid=1"), ("/app?x", "app=2; sid=1"), ("/app?", "app=2; sid=1"), ("/app/?/", "app=2; sid=1"),
            ("?x", "sid=1"), ("", "sid=1"),
        ])
    func query(_ target: String, _ line: String) throws {
        #expect(try sent([session("sid=1; Path=/", "app=2; Path=/app")], to: target) == ["Cookie: \(line)"])
    }

    @Test("a request for the server as a whole (*) matches no cookie's path")
    func asterisk() throws {
        #expect(try sent([session("sid=1; Path=/")], to: "*") == [])
    }

    @Test("a caller's cookies stand before the session's, less those of its names")
    func callers() throws {
        let session = session("sid=1; Path=/")
        #expect(try sent([session], callers: ["a=1; sid=x", "b=2"]) == ["Cookie: a=1; b=2; sid=1"])
        #expect(try sent([self.session("sid=1; Path=/app")], callers: ["sid=x"]) == ["Cookie: sid=x"])
        #expect(try sent([session], callers: [";"]) == ["Cookie: sid=1"])
    }

    @Test("several sessions and injected fields make one line; of a name twice, that of the later session goes")
    func several() throws {
        let injected = Session(fields: [InjectedField(name: .cookie, value: Secret("x=9"))])
        let sessions = [session("sid=1; Path=/", "a=1; Path=/"), injected, session("sid=2; Path=/")]
        #expect(try sent(sessions) == ["Cookie: x=9; a=1; sid=2"])
        #expect(try sent(sessions, callers: ["b=2"]) == ["Cookie: b=2; x=9; a=1; sid=2"])
    }
}
