// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("A worker's view of a session's cookies")
struct SessionCookieViewTests {
    private let origin = Origin(scheme: .https, host: "www.example.com")

    private func url(_ path: String) -> WebURL { WebURL(origin: origin, path: path) }

    /// What a login at `/app/login` set.
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
