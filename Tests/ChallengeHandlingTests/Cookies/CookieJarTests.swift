// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Cookies are stored and sent by RFC 6265 §5")
final class CookieJarTests {
    private static let now: Int64 = 1_795_276_800_000
    private var jar = CookieJar()

    private func store(
        _ line: String, from address: String = "https://www.example.com/app/login", now: Int64 = now
    ) throws -> Bool {
        jar.store(line, from: try #require(WebURL(address)), now: now)
    }

    private func header(
        _ address: String = "https://www.example.com/app/home", now: Int64 = now, _ jar: CookieJar? = nil
    ) throws -> String? {
        (jar ?? self.jar).header(for: try #require(WebURL(address)), now: now)?.revealText()
    }

    @Test("a cookie without attributes goes to its host and the folder of its address")
    func plain() throws {
        #expect(try store("JSESSIONID=AB12"))
        #expect(try header() == "JSESSIONID=AB12")
        #expect(try header("https://www.example.com/app?x=1") == "JSESSIONID=AB12")
        #expect(try header("https://www.example.com/app/") == "JSESSIONID=AB12")
        #expect(try header("https://www.example.com/apple") == nil)
        #expect(try header("https://www.example.com/") == nil)
        #expect(try header("https://sub.www.example.com/app/") == nil)
        #expect(try header("https://example.com/app/") == nil)
        #expect(jar.names == ["JSESSIONID"] && jar.contains(name: "JSESSIONID") && !jar.contains(name: "jsessionid"))
        #expect(!jar.isEmpty && jar.expiresAt == nil)
    }

    @Test(
        "a Set-Cookie line that sets no cookie is refused",
        arguments: [
            "", "=", " ; Path=/", ";a=b", "__Host-a", "=__Secure-a; Secure", "=a=b", "a\tb=1", "a=b\tc", "a\u{0}=b",
            "a=b\u{7F}",
            "a=b\u{1}; Path=/",
            "a=" + String(repeating: "x", count: 4096),
        ])
    func unusable(_ line: String) throws {
        #expect(try !store(line))
        #expect(jar.isEmpty)
    }

    @Test("a cookie without a name is its value alone, as in browsers")
    func nameless() throws {
        #expect(try store("alone; Path=/"))
        #expect(try header("https://www.example.com/") == "alone")
        #expect(try store(" = x y ; Path=/"))
        #expect(try header("https://www.example.com/") == "x y")
        #expect(try store("; Path=/; Max-Age=0") == false)
        #expect(try store("x; Path=/; Max-Age=0"))
        #expect(jar.isEmpty)
    }

    @Test("name and value go back byte by byte, in whatever encoding, with quotation marks and commas")
    func bytes() throws {
        let url = try #require(WebURL("https://www.example.com/"))
        let line: [UInt8] = [0xFC, 0x3D, 0x22, 0xE4, 0x2C, 0x20, 0xFF, 0x22]
        jar.store(line, from: url, now: Self.now)
        jar.store([0xFD, 0x3D, 0x31], from: url, now: Self.now)
        #expect(jar.header(for: url, now: Self.now)?.revealBytes() == line + Array("; ".utf8) + [0xFD, 0x3D, 0x31])
        let session = SessionCookies(jar)
        #expect(session.take([0xFC, 0x3D, 0xFE], from: url, now: Self.now))
        #expect(!session.take([0xFB, 0x3D, 0xFE], from: url, now: Self.now))
        let field = try #require(
            session.merged(withLines: [[0xFC, 0x3D, 0x31], [0xFA, 0x3D, 0x32]], for: url, now: Self.now))
        let pairs = Set(field.split(separator: UInt8(ascii: ";")).map { Array($0.drop { $0 == 0x20 }) })
        #expect(pairs == [[0xFC, 0x3D, 0xFE], [0xFD, 0x3D, 0x31], [0xFA, 0x3D, 0x32]])
    }

    @Test("white space around a cookie's name and value is removed, all else is unchanged")
    func whiteSpace() throws {
        #expect(try store("  a \t=  \"b = c\"\t ; Path = / "))
        #expect(try store("empty=; Path=/; HttpOnly; SameSite=Strict; Unknown=1"))
        #expect(try header("https://www.example.com/") == "a=\"b = c\"; empty=")
    }

    @Test("a cookie's Domain covers hosts below it, if set from within it, and never a top-level label")
    func domains() throws {
        #expect(try store("wide=1; Domain=.Example.COM; Path=/"))
        #expect(try header("https://example.com/") == "wide=1")
        #expect(try header("https://a.b.example.com/") == "wide=1")
        #expect(try header("https://badexample.com/") == nil)
        #expect(try !store("a=1; Domain=com"))
        #expect(try !store("a=1; Domain=other.com"))
        #expect(try !store("a=1; Domain=sub.www.example.com"))
        #expect(try !store("a=1; Domain=ww.example.com"))
        #expect(try store("empty=1; Domain=; Path=/"))
        #expect(try header("https://sub.www.example.com/") == "wide=1")
    }

    @Test("a host of one label and an address keep their cookies to themselves")
    func bareHosts() throws {
        #expect(try store("a=1; Domain=intranet; Path=/", from: "https://intranet/"))
        #expect(try header("https://intranet/") == "a=1")
        #expect(try header("https://www.intranet/") == nil)
        #expect(try store("b=1; Domain=127.0.0.1; Path=/", from: "http://127.0.0.1:8080/"))
        #expect(try header("http://127.0.0.1:9090/") == "b=1")
        #expect(try !store("c=1; Domain=0.0.1", from: "http://127.0.0.1:8080/"))
    }

    @Test("a cookie's path covers itself and everything below; an invalid path means the address's folder")
    func paths() throws {
        #expect(try store("a=1; Path=/app/x"))
        #expect(try header("https://www.example.com/app/x") == "a=1")
        #expect(try header("https://www.example.com/app/x/y") == "a=1")
        #expect(try header("https://www.example.com/app/xy") == nil)
        #expect(try store("b=1; Path=app", from: "https://www.example.com/one/two/three"))
        #expect(try header("https://www.example.com/one/two") == "b=1")
        #expect(try header("https://www.example.com/one") == nil)
        #expect(try store("c=1", from: "https://www.example.com/top"))
        #expect(try header("https://www.example.com/") == "c=1")
    }

    @Test("cookies are ordered by the longest path, then by age")
    func order() throws {
        #expect(try store("a=1; Path=/"))
        #expect(try store("b=2; Path=/app/deep"))
        #expect(try store("c=3; Path=/"))
        #expect(try store("a=4; Path=/"))
        #expect(try header("https://www.example.com/app/deep/x") == "b=2; a=4; c=3")
    }

    @Test("Max-Age overrides Expires, and an expired cookie is removed")
    func ends() throws {
        #expect(try store("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT"))
        #expect(try store("b=1; Expires=Sun, 22 Nov 2026 16:00:00 GMT"))
        #expect(try store("c=1; Max-Age=x; Expires=yesterday"))
        #expect(jar.expiresAt == Self.now + 60_000)
        #expect(try header() == "a=1; b=1; c=1")
        #expect(try header(now: Self.now + 59_999) == "a=1; b=1; c=1")
        #expect(try header(now: Self.now + 60_000) == "b=1; c=1")
        #expect(try store("c=; Max-Age=0"))
        #expect(try store("b=; Max-Age=-1"))
        #expect(try store("never-was=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"))
        #expect(jar.names == ["a"])
        #expect(try store("a=2; Max-Age=99999999999999999999"))
        #expect(jar.expiresAt == Self.now + 400 * 86_400_000)
    }

    @Test("a cookie of another path or domain is another cookie; an equal one is replaced in its position")
    func identity() throws {
        #expect(try store("a=1; Path=/app"))
        #expect(try store("a=2; Path=/"))
        #expect(try header() == "a=1; a=2")
        #expect(try store("a=; Path=/app; Max-Age=0"))
        #expect(try header() == "a=2")
    }

    @Test("a Secure cookie is neither set nor sent nor overwritten over plain HTTP, except on this machine")
    func secure() throws {
        #expect(try store("a=1; Path=/; Secure"))
        #expect(try header("https://www.example.com/") == "a=1")
        #expect(try header("http://www.example.com/") == nil)
        #expect(try !store("b=1; Secure", from: "http://www.example.com/"))
        #expect(try !store("a=2; Path=/", from: "http://www.example.com/"))
        #expect(try !store("a=2; Path=/; Domain=example.com", from: "http://www.example.com/"))
        #expect(try store("a=3; Path=/", from: "https://www.example.com/"))
        #expect(try header("http://www.example.com/") == "a=3")
        var local = CookieJar()
        let address = try #require(WebURL("http://127.0.0.1:8080/"))
        local.store("d=1; Secure", from: address, now: Self.now)
        #expect(local.header(for: address, now: Self.now)?.revealText() == "d=1")
    }

    @Test("a cookie must fulfil the prefix of its name")
    func prefixes() throws {
        #expect(try !store("__Secure-a=1; Path=/"))
        #expect(try store("__Secure-a=1; Path=/; Secure"))
        #expect(try !store("__Host-b=1; Secure"))
        #expect(try !store("__Host-b=1; Secure; Path=/; Domain=www.example.com"))
        #expect(try store("__Host-b=1; Secure; Path=/"))
    }

    @Test("a cookie must fulfil the prefix of its name on this machine too, although Secure needs no TLS there")
    func localPrefixes() throws {
        var local = CookieJar()
        let address = try #require(WebURL("http://127.0.0.1:8080/app/"))
        for line in ["__Host-a=1; Path=/", "__Host-a=1; Secure", "__Secure-b=1", "__host-c=1; Path=/app; Secure"] {
            let isKept = local.store(line, from: address, now: Self.now)
            #expect(!isKept, "\(line)")
        }
        local.store("__Host-a=1; Path=/; Secure", from: address, now: Self.now)
        local.store("__Secure-b=1; Secure", from: address, now: Self.now)
        #expect(local.header(for: address, now: Self.now)?.revealText() == "__Secure-b=1; __Host-a=1")
    }

    @Test("a cookie with an excessive age expires after 400 days, and its age never overflows")
    func longestAge() throws {
        for age in ["9223372036854775807", "9223372036854775808", "34560001", String(repeating: "9", count: 1000)] {
            #expect(try store("a=1; Max-Age=\(age)"))
            #expect(jar.expiresAt == Self.now + 400 * 86_400_000)
        }
        #expect(try store("a=1; Max-Age=34560000", now: .max - 1))
        #expect(jar.expiresAt == nil)
        for age in ["-9223372036854775808", "-99999999999999999999", "0", "00"] {
            #expect(try store("a=1; Max-Age=\(age)"))
            #expect(jar.isEmpty)
        }
        // The last one counts, as in Chromium, even if it is not a number.
        for age in ["-0x1", "+5", "1.5", ""] {
            #expect(try store("b=1; Max-Age=1; Max-Age=\(age)"))
            #expect(jar.expiresAt == nil)
        }
        #expect(try store("b=1; Max-Age=; Max-Age=1"))
        #expect(jar.expiresAt == Self.now + 1000)
    }

    @Test("a jar holds 64 cookies and drops the oldest beyond that")
    func bound() throws {
        for number in 0..<70 { #expect(try store("n\(number)=1; Path=/")) }
        #expect(jar.names.count == 64)
        #expect(!jar.contains(name: "n5") && jar.contains(name: "n6") && jar.contains(name: "n69"))
    }

    @Test("a cookie jar prints no values")
    func redaction() throws {
        #expect(try store("a=hush-hush"))
        var dumped = ""
        dump(jar, to: &dumped)
        #expect(!"\(jar)\(dumped)".contains("hush-hush"))
    }

    @Test(
        "cookie dates are parsed as leniently as RFC 6265 §5.1.1 says",
        arguments: [
            "Sun, 22 Nov 2026 16:00:00 GMT", "Sunday, 22-Nov-26 16:00:00 GMT", "Sun Nov 22 16:00:00 2026",
            "22 nov 2026 16:0:0", "16:00:00 November-22-2026 anything", "22x nov 2026y 16:00:00z",
        ])
    func dates(_ text: String) throws {
        #expect(try store("a=1; Expires=\(text)"))
        #expect(jar.expiresAt == Self.now + 86_400_000)
    }

    @Test(
        "an invalid Expires makes a session cookie",
        arguments: [
            "", "22 Nov 2026", "16:00:00 22 2026", "31 Feb 2026 16:00:00", "22 Nov 1600 16:00:00",
            "22 Nov 2026 24:00:00", "22 Nov 2026 16:60:00", "22 Nov 20261 16:00:00", "0 Nov 2026 16:00:00",
        ])
    func noDates(_ text: String) throws {
        #expect(try store("a=1; Expires=\(text)"))
        #expect(jar.expiresAt == nil && jar.contains(name: "a"))
    }
}

@Suite("Cookies go back as Chromium sends them")
struct CookieJudgeTests {
    @Test("a cookie is sent to the same paths, byte by byte", arguments: JudgeTable("chromium-cookies").rows)
    func judged(_ row: [String]) throws {
        let now: Int64 = 1_795_276_800_000
        var jar = CookieJar()
        let line = try #require(JudgeTable.bytes(row[0]))
        jar.store(line, from: try #require(WebURL("http://c.localhost/app/set")), now: now)
        for (path, expected) in zip(["/app/home", "/", "/app/deep/x"], row.dropFirst()) {
            let url = try #require(WebURL("http://c.localhost\(path)"))
            let sent = jar.header(for: url, now: now)?.revealBytes()
            #expect(sent == (expected == "-" ? nil : JudgeTable.bytes(expected)), "\(row[0]) at \(path)")
        }
    }
}
