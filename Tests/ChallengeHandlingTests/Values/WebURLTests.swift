// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
