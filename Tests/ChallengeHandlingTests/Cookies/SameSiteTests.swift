// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("SameSite of cookies (RFC 6265bis §5.2, §5.6.7, §5.8.3)")
struct SameSiteTests {
    private static let now: Int64 = 1_795_276_800_000
    private static let address = "https://idp.example.org/"

    private func header(
        _ lines: [String], in site: RequestSite, after age: Int64 = 0, at address: String = address
    ) throws -> String? {
        var jar = CookieJar()
        let url = try #require(WebURL(address))
        for line in lines { jar.store(line, from: url, now: Self.now) }
        return jar.header(for: url, now: Self.now + age, in: site)?.revealText()
    }

    @Test(
        "a redirect from another site carries all but Strict, a form of another site carries None only",
        arguments: [
            ("SameSite=Strict", false, false), ("samesite = STRICT ", false, false), ("SameSite=Lax", true, false),
            ("SameSite=None; Secure", true, true), ("SameSite=Strict; SameSite=None; Secure", true, true),
            ("SameSite=None; Secure; SameSite=Strict", false, false),
        ])
    func attributes(_ attribute: String, isInRedirects: Bool, isInForms: Bool) throws {
        let line = "a=1; \(attribute)"
        #expect(try header([line], in: .same) == "a=1")
        #expect(try header([line], in: .crossSafe) == (isInRedirects ? "a=1" : nil))
        #expect(try header([line], in: .crossUnsafe) == (isInForms ? "a=1" : nil))
    }

    @Test(
        "a cookie without a valid SameSite is Lax, but for two minutes a form of another site carries it",
        arguments: ["a=1", "a=1; SameSite", "a=1; SameSite=Maybe", "a=1; SameSite=None", "a=1; SameSite=Lax; SameSite"])
    func unset(_ line: String) throws {
        for age in [Int64(-1), 0, 119_999, 120_000] {
            #expect(try header([line], in: .crossSafe, after: age) == "a=1")
            #expect(try header([line], in: .crossUnsafe, after: age) == ((0..<120_000).contains(age) ? "a=1" : nil))
        }
    }

    @Test("a cookie that is set again is as old as the first of its name")
    func age() throws {
        var jar = CookieJar()
        let url = try #require(WebURL(Self.address))
        jar.store("a=1", from: url, now: Self.now)
        jar.store("a=2", from: url, now: Self.now + 119_000)
        #expect(jar.header(for: url, now: Self.now + 119_500, in: .crossUnsafe)?.revealText() == "a=2")
        #expect(jar.header(for: url, now: Self.now + 121_000, in: .crossUnsafe) == nil)
        jar.store("a=; Max-Age=0", from: url, now: Self.now + 122_000)
        jar.store("a=3", from: url, now: Self.now + 123_000)
        #expect(jar.header(for: url, now: Self.now + 124_000, in: .crossUnsafe)?.revealText() == "a=3")
    }

    @Test("the other cookies of a request keep their order")
    func order() throws {
        let lines = ["a=1; SameSite=Strict", "b=2; SameSite=Lax", "c=3; SameSite=None; Secure"]
        #expect(try header(lines, in: .same) == "a=1; b=2; c=3")
        #expect(try header(lines, in: .crossSafe) == "b=2; c=3")
        #expect(try header(lines, in: .crossUnsafe) == "c=3")
    }

    @Test("neither SameSite nor the time of creation makes a session's cookies others")
    func equality() throws {
        var (jar, other) = (CookieJar(), CookieJar())
        let url = try #require(WebURL(Self.address))
        jar.store("a=1; SameSite=Strict", from: url, now: Self.now)
        other.store("a=1", from: url, now: Self.now + 1)
        #expect(jar == other && !jar.hasMore(than: other))
        other.store("a=1; Secure", from: url, now: Self.now)
        #expect(jar != other)
    }

    @Test(
        "hosts are of one site if they are equal, or if one is a domain of two labels or more above the other",
        arguments: [
            ("https://a.example.com", "https://a.example.com:8443", true),
            ("https://a.example.com", "https://example.com", true),
            ("https://example.com", "https://b.a.example.com", true),
            ("http://127.0.0.1:1", "http://127.0.0.1:2", true),
            ("http://a.example.com", "https://a.example.com", false),
            ("https://a.example.com", "https://b.example.com", false), ("https://a.co.uk", "https://b.co.uk", false),
            ("https://example.com", "https://com", false), ("https://badexample.com", "https://example.com", false),
            ("http://10.0.0.1", "http://0.0.1", false), ("http://localhost:1", "http://127.0.0.1:1", false),
            ("http://a.localhost", "http://localhost", false), ("http://a.com.", "http://com.", false),
        ])
    func sites(_ one: String, _ other: String, isSame: Bool) throws {
        // Some of these are not valid addresses everywhere, but hosts that a server may have.
        func origin(_ text: String) throws -> Origin {
            let parts = text.split(separator: "/", omittingEmptySubsequences: true)
            let halves = try #require(parts.last).split(separator: ":")
            return Origin(
                scheme: text.hasPrefix("https") ? .https : .http, host: String(halves[0]),
                port: halves.count > 1 ? try #require(UInt16(halves[1])) : 80)
        }
        let (one, other) = (try origin(one), try origin(other))
        #expect(one.isSameSite(as: other) == isSame && other.isSameSite(as: one) == isSame)
    }

    @Test("one foreign page or redirect on the way makes a request one of another site")
    func chains() throws {
        let idp = try #require(WebURL(Self.address)).origin
        let (app, below) = (
            try #require(WebURL("https://app.example.net")).origin,
            try #require(WebURL("https://a.idp.example.org")).origin
        )
        #expect(RequestSite(.get, to: idp, from: [idp, below]) == .same)
        #expect(RequestSite(.post, to: idp, from: [idp]) == .same)
        #expect(RequestSite(.get, to: idp, from: [idp, app]) == .crossSafe)
        #expect(RequestSite(.head, to: idp, from: [app]) == .crossSafe)
        for method in [HTTPRequest.Method.post, .put, .delete] {
            #expect(RequestSite(method, to: idp, from: [idp, app]) == .crossUnsafe)
        }
    }
}
