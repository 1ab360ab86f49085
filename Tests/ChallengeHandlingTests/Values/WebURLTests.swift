// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Web addresses")
struct WebURLTests {
    @Test(
        "a printed address parses to an equal address",
        arguments: ["https://a.example./b?c", "http://[2001:DB8::1]:80/", "HTTP://A:8080", "https://a:443/%"])
    func printed(_ text: String) throws {
        let url = try #require(WebURL(text))
        #expect(WebURL(url.description) == url)
    }

    @Test("a colon without a port means the default port, after a name and after an address in brackets")
    func emptyPort() {
        #expect(WebURL("https://a:/b")?.description == "https://a/b")
        #expect(WebURL("https://[::1]:/b")?.description == "https://[::1]/b")
        #expect(WebURL("https://[::1]:x/b") == nil)
    }

    @Test("an address whose host has an empty label is refused", arguments: ["a..", "526..", ".9.", ".a", "a..b", "."])
    func emptyLabels(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }

    @Test("no part of an address ends its target, the request line or the request, whatever byte is in it")
    func unsplittable() throws {
        let origin = Origin(scheme: .https, host: "a.example")
        let base = try #require(WebURL("https://a.example/b"))
        for byte in UInt8.min...UInt8.max {
            let text = String(decoding: [UInt8(ascii: "/"), byte, UInt8(ascii: "x")], as: UTF8.self)
            let urls = [
                WebURL(origin: origin, path: text), WebURL(origin: origin, path: "/", query: text),
                base.appending(path: text), base.appending(target: text), base.appending(target: "/?\(text)"),
                WebURL(origin: origin, path: String(text.dropFirst())),
            ]
            for url in urls {
                #expect(url.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }, "\(byte)")
                #expect(url.path.hasPrefix("/") && !url.path.contains("?"), "\(byte)")
                // What is sent is one target for every reader.
                if !"\"<>\\".utf8.contains(byte) { #expect(WebURL(url.description) == url, "\(byte)") }
            }
        }
    }

    @Test("bytes that no target has are percent-encoded, and a query of an appended target stays one")
    func encoded() throws {
        let origin = Origin(scheme: .https, host: "a.example")
        let split = WebURL(origin: origin, path: "/a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b", query: "c#d é?\0")
        #expect(split.target == "/a%20HTTP/1.1%0D%0AHost:%20x%0D%0A%0D%0APOST%20/b?c%23d%20%C3%A9?%00")
        #expect(WebURL(origin: origin, path: "/a?b").target == "/a%3Fb")
        #expect(WebURL(origin: origin, path: "a").target == "/a")
        #expect(WebURL(origin: origin, path: "*").target == "*")
        #expect(WebURL(origin: origin, path: "", query: "").target == "/?")
        #expect(WebURL(origin: origin, path: "/%zz[]{}|^`\"<>\\").target == "/%zz[]{}|^`\"<>\\")
        let base = try #require(WebURL("https://a.example/b/?c"))
        #expect(base.appending(target: "/d?e?f").target == "/b/d?e?f")
        #expect(base.appending(target: "d").target == "/b/d")
    }

    @Test("an address with brackets but no colon in its host is refused", arguments: ["[8]", "[]", "[.]"])
    func brackets(_ host: String) {
        #expect(WebURL("https://\(host)/") == nil)
    }
}

@Suite("IPv6 addresses")
struct IPv6AddressTests {
    @Test(
        "each spelling of an IPv6 address has one canonical text",
        arguments: [
            ("::", "::"), ("::1", "::1"), ("0:0:0:0:0:0:0:1", "::1"), ("0000::0001", "::1"), ("1::", "1::"),
            ("2001:DB8::A", "2001:db8::a"), ("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"),
            ("2001:0:0:1:0:0:0:1", "2001:0:0:1::1"), ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"),
            ("::ffff:127.0.0.1", "::ffff:7f00:1"), ("1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a"),
            ("1::3:4:5:6:7:8", "1:0:3:4:5:6:7:8"), ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"),
            ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"),
        ])
    func canonical(text: String, expected: String) throws {
        let address = try #require(IPv6Address(text[...]))
        #expect(address.description == expected)
        #expect(IPv6Address(expected[...]) == address)
    }

    @Test(
        "a text that is not an IPv6 address is refused",
        arguments: [
            "", ":", "1", ":::", "1:::2", "::1::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
            "::1.", "::.", "::1.2.3", "::1.2.3.4.5", "::1.2.3.256", "::1.2.3.04", "::1.2.3.4:5", "1.2.3.4", "::g",
            "::+1", "::-1",
            "12345::", ":1", "1:", "::1%eth0", "1:2:3:4:5:6:7:1.2.3.4", "::\u{FF11}",
        ])
    func refused(text: String) { #expect(IPv6Address(text[...]) == nil) }
}

@Suite("Addresses of servers are read as browsers read them")
struct AddressReaderTests {
    private static let base = "https://a.example/d/e?f"

    private func read(_ text: String, at base: String? = base) throws -> String {
        let base = try base.map { try #require(WebURL($0)) }
        return try WebURL(reading: text.utf8, at: base).description
    }

    private func fault(_ text: String, at base: String? = base) throws -> String {
        let base = try base.map { try #require(WebURL($0)) }
        switch Self.reading(text.utf8, base) {
        case .success(let url): return "read as \(url)"
        case .failure(let fault): return fault.reason
        }
    }

    private static func reading(_ bytes: some Collection<UInt8>, _ base: WebURL?) -> Result<WebURL, AddressFault> {
        do throws(AddressFault) {
            return .success(try WebURL(reading: bytes, at: base))
        } catch {
            return .failure(error)
        }
    }

    @Test(
        "a reference is resolved, encoded and normalized",
        arguments: [
            ("/login?zurück=/für-alle", "https://a.example/login?zur%C3%BCck=/f%C3%BCr-alle"),
            ("/a b?c d", "https://a.example/a%20b?c%20d"), ("  /x\t\r\n", "https://a.example/x"),
            ("/lo\tg\r\nin", "https://a.example/login"), ("\\x\\y?\\z", "https://a.example/x/y?\\z"),
            ("//b.example", "https://b.example/"), ("\\\\b.example\\x", "https://b.example/x"),
            ("///b.example/x", "https://b.example/x"), ("/\t/b.example/x", "https://b.example/x"),
            ("https:g", "https://a.example/d/g"), ("https:/g", "https://a.example/g"), ("http:g", "http://g/"),
            ("https://A.Example:443/x", "https://a.example/x"), ("https://a.example:0443/", "https://a.example/"),
            ("", "https://a.example/d/e?f"), ("#top", "https://a.example/d/e?f"), ("?q", "https://a.example/d/e?q"),
            ("?", "https://a.example/d/e?"), (".", "https://a.example/d/"), ("../../g", "https://a.example/g"),
            ("./%2e%2E/g/%2e", "https://a.example/g/"), ("x//../y", "https://a.example/d/x/y"),
            ("/.//x", "https://a.example//x"), ("x;p=1:2", "https://a.example/d/x;p=1:2"),
            ("./x:y", "https://a.example/d/x:y"),
            ("/\"<>`{}^|%zz", "https://a.example/%22%3C%3E%60%7B%7D%5E|%zz"),
            ("?\"<>'`{}^|#x", "https://a.example/d/e?%22%3C%3E%27`{}^|"),
            ("https://u:p@a.example/x", "https://a.example/x"),
            ("//b.example\\@a.example/", "https://b.example/@a.example/"),
            ("https://a@b@c.example/", "https://c.example/"), ("//ex%61mple.org/", "https://example.org/"),
            ("//0x7f.1/", "https://127.0.0.1/"), ("//2130706433", "https://127.0.0.1/"),
            ("//0177.0.0.01./", "https://127.0.0.1/"),
            ("//1.2.3", "https://1.2.0.3/"), ("//[::FFFF:1.2.3.4]:8/", "https://[::ffff:102:304]:8/"),
            ("//xn--mnchen-3ya.example/", "https://xn--mnchen-3ya.example/"),
        ])
    func resolved(_ text: String, _ expected: String) throws {
        #expect(try read(text) == expected)
    }

    @Test("bytes of a target that are not UTF-8 come back as they were")
    func bytes() throws {
        let url = try WebURL(reading: [0x2F, 0x66, 0xFC, 0x72, 0x3F, 0xFC], at: WebURL(Self.base))
        #expect(url.target == "/f%FCr?%FC")
    }

    @Test("a base with dot segments, as a caller wrote it, is normalized with the reference")
    func base() throws {
        #expect(try read("g", at: "https://a.example/x/../y/./z") == "https://a.example/y/g")
        #expect(try read("https://b.example/x", at: nil) == "https://b.example/x")
    }

    @Test(
        "an address that no request can have is refused with its reason",
        arguments: [
            ("mailto:a@b", "scheme"), ("javascript:alert(1)", "scheme"), ("ftp://a/", "scheme"), ("x:", "scheme"),
            ("//münchen.example/", "xn--"), ("//m%C3%BCnchen.example/", "xn--"), ("https://", "host"),
            ("//a b/", "character"), ("//a%2Fb/", "character"), ("//a,b/", "character"), ("//a..b/", "label"),
            ("//h:0/", "port"), ("//h:65536/", "port"), ("//h:1x/", "port"), ("//[::1", "bracket"),
            ("//[::1]x/", "IPv6"),
            ("//[8]/", "IPv6"), ("//[::1%25e]/", "IPv6"), ("//1.2.3.4.5/", "IPv4"), ("//1.2.3.256/", "IPv4"),
            ("//a.08/", "IPv4"), ("//256.1/", "IPv4"), ("//4294967296/", "IPv4"), ("//99999999999999999999/", "IPv4"),
        ])
    func refused(_ text: String, _ word: String) throws {
        #expect(try fault(text).contains(word))
        #expect(try #require(WebURL(Self.base)).resolving(text) == nil)
    }

    @Test("without a base, only an absolute address is read")
    func noBase() throws {
        #expect(try fault("/x", at: nil) == "has no scheme")
        #expect(try fault("//a.example/", at: nil) == "has no scheme")
        #expect(try fault("https://u@a.example/", at: nil).contains("user information"))
        #expect(try read("https:a.example", at: nil) == "https://a.example/")
    }

    @Test("no byte of an address ends its request line or changes its origin")
    func everyByte() throws {
        for byte in UInt8.min...UInt8.max where byte != UInt8(ascii: "#") {
            let base = try #require(WebURL(Self.base))
            for place in [Array("/x".utf8), Array("?x".utf8), Array("x".utf8)] {
                // `x:y` has another scheme.
                if place.first == UInt8(ascii: "x"), byte == UInt8(ascii: ":") { continue }
                let url = try WebURL(reading: place + [byte] + Array("y".utf8), at: base)
                #expect(url.origin == base.origin && url.target.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "\(byte)")
                #expect(try WebURL(reading: url.description.utf8) == url, "\(byte)")
            }
        }
    }

    // Where we differ, we refuse: hosts that are no names of the DNS, and names that need a table of Unicode. Such an origin
    // could not be configured either. A dot at the end of a name is dropped.
    @Test("ada-url reads the same", arguments: JudgeTable("ada-url").rows)
    func judged(_ row: [String]) throws {
        let (base, text, expected) = (
            try #require(JudgeTable.bytes(row[0])), try #require(JudgeTable.bytes(row[1])), row[2]
        )
        let origin = try #require(WebURL(String(decoding: base, as: UTF8.self)))
        switch Self.reading(text, origin) {
        case .success(let found):
            // A label of the Punycode form is compared and looked up as it is written.
            if expected == "-", found.origin.host.contains("xn--") { return }
            #expect(found.description == expected, "\(row)")
        case .failure(let fault):
            guard expected != "-" else { return }
            let host = expected.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "/" }
            let isStrange =
                host.isEmpty || host.contains("..") || host.hasPrefix(".") || host.hasSuffix(".")
                || host.hasSuffix(":0")
                || fault.reason.contains("not ASCII")
                || host.contains { !$0.isLetter && !$0.isNumber && !".-_:[]".contains($0) }
            #expect(isStrange, "\(row) is refused: \(fault.reason)")
        }
    }
}
