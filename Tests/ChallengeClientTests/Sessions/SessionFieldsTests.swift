// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import HTTPWire
import Secrets
import Testing

@testable import ChallengeClient

@Suite("The fields of sessions")
struct SessionFieldsTests {
    private let fields: SessionFields

    init() throws {
        fields = SessionFields([
            InjectedField(name: .authorization, value: Secret("Bearer x")),
            InjectedField(name: try #require(HTTPField.Name("X-Api-Key")), value: Secret("k")),
        ])
    }

    @Test(
        "a caller's own field of that name gives way, in whatever case it is written",
        arguments: [
            "Authorization", "authorization", "AUTHORIZATION", "X-Api-Key", "x-api-key", "X-API-KEY",
            // CGI programs see these names as one.
            "X_Api_Key", "X-Api_Key", "x_API-key",
        ])
    func overridden(name: String) {
        #expect(overrides(name))
    }

    @Test(
        "fields of other names than the session's stay",
        arguments: [
            "Cookie", "Proxy-Authorization", "X-Api-Ke", "X-Api-Key2", "Y_Api_Key", "Y-Api-Key", "Cook_ie", "X_Api_Ke",
            "Xapi-Key-",
            "", "Authorizatio",
        ])
    func others(name: String) {
        #expect(!overrides(name))
    }

    @Test("a field injected with underscores replaces every spelling that a CGI program reads as it")
    func underscores() throws {
        let fields = SessionFields([
            InjectedField(name: try #require(HTTPField.Name("X_Tenant")), value: Secret("blue")),
            InjectedField(name: try #require(HTTPField.Name("X_Forwarded_For")), value: Secret("here")),
        ])
        for name in ["X_Tenant", "X-Tenant", "x-TENANT", "X-Forwarded-For", "x_forwarded-for"] {
            let bytes = Array(name.utf8)
            let kind = FieldName(bytes.span, ByteRange(start: 0, end: bytes.count))
            let isOverridden = fields.override(kind, named: bytes.span)
            #expect(isOverridden, "\(name)")
        }
    }

    @Test("without a session no field of the caller gives way")
    func none() {
        let isOverridden = SessionFields.none.override(.authorization, named: Array("Authorization".utf8).span)
        #expect(!isOverridden)
    }

    @Test("session fields are appended in order, and no description shows a value")
    func appended() throws {
        let sink = FieldSink()
        fields.write(into: sink)
        #expect(count(sink) == 2)
        #expect(!"\(fields)".contains("Bearer"))
    }

    @Test("injected Cookie fields, and a session's cookies beside them, become one line")
    func cookieLine() throws {
        let url = try #require(WebURL("http://a.example/app"))
        var jar = CookieJar()
        _ = jar.store("sid=1; Path=/", from: url, now: 0)
        let injected = ["a=1; b=2", "c=3"].map { InjectedField(name: .cookie, value: Secret($0)) }
        let both = Session(fields: injected, cookies: SessionCookies(jar))
        for (sessions, expected) in [
            ([both], "sid=1; a=1; b=2; c=3"),
            ([Session(fields: [injected[0]]), Session(fields: [injected[1]])], "a=1; b=2; c=3"),
        ] {
            let fields = SessionFields(sessions, limitsCodings: false)
            let sink = FieldSink()
            fields.write(into: sink)
            #expect(count(sink) == 0)
            let cookies = RequestCookies(
                of: fields.cookies, injected: fields.cookieFields, to: url.origin, target: url.target.utf8.span, now: 0)
            #expect(cookies.merged(with: []).map { String(decoding: $0, as: UTF8.self) } == expected)
            let isOverridden = fields.override(.cookie, named: Array("Cookie".utf8).span)
            #expect(isOverridden && fields.hasCookies)
        }
        let alone = FieldSink()
        SessionFields([Session(fields: [injected[0]])], limitsCodings: false).write(into: alone)
        #expect(count(alone) == 1, "one field alone needs no merging")
    }

    private func count(_ sink: FieldSink) -> Int {
        var count = 0
        sink.forEachField { _, _ in count += 1 }
        return count
    }

    private func overrides(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        return fields.override(FieldName(bytes.span, ByteRange(start: 0, end: bytes.count)), named: bytes.span)
    }
}

@Suite("The cookies of one request")
struct RequestCookiesTests {
    private let origin = Origin(scheme: .http, host: "a.example")

    private func session(_ cookies: String...) -> Session {
        var jar = CookieJar()
        for cookie in cookies { jar.store(cookie, from: WebURL(origin: origin, path: "/"), now: 0) }
        return Session(cookies: SessionCookies(jar))
    }

    /// Returns the lines of a request to `target` whose caller sends `callers`.
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

    @Test("a caller's cookies follow the session's, except those with the same names")
    func callers() throws {
        let session = session("sid=1; Path=/")
        #expect(try sent([session], callers: ["a=1; sid=x", "b=2"]) == ["Cookie: sid=1; a=1; b=2"])
        #expect(try sent([self.session("sid=1; Path=/app")], callers: ["sid=x"]) == ["Cookie: sid=x"])
        #expect(try sent([session], callers: [";"]) == ["Cookie: sid=1"])
    }

    @Test("several sessions and injected fields make one line; of a name twice, that of the later session goes")
    func several() throws {
        let injected = Session(fields: [InjectedField(name: .cookie, value: Secret("x=9"))])
        let sessions = [session("sid=1; Path=/", "a=1; Path=/"), injected, session("sid=2; Path=/")]
        #expect(try sent(sessions) == ["Cookie: a=1; sid=2; x=9"])
        #expect(try sent(sessions, callers: ["b=2"]) == ["Cookie: a=1; sid=2; x=9; b=2"])
    }
}
