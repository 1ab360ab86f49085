// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Location patterns")
struct LocationPatternTests {
    @Test(
        "a location pattern covers the locations of its rules",
        arguments: [
            // The scheme supplies the default port and is not compared.
            ("foo.example.com", "http://foo.example.com"), ("foo.example.com", "ws://foo.example.com"),
            ("https://foo.example.com:80", "http://foo.example.com"), ("wss://a.com", "https://a.com:443/"),
            ("a.com:443", "https://a.com"), ("HTTPS://a.com", "wss://a.com"), ("a.com:", "a.com:80"),
            // Query, fragment and trailing slashes vanish.
            ("a.com/a", "http://a.com/a/?x=/b#c/d"), ("a.com/a/", "a.com/a"), ("a.com/", "a.com"),
            ("a.com", "a.com?next=http://b.com/c"), ("a.com", "a.com#x@y"),
            // Case and escapes.
            ("A.com.", "a.COM"), ("[2001:DB8::1]:8080", "http://[2001:db8::1]:8080"), ("a.com/a", "a.com/%61"),
            ("a.com/%7e", "a.com/~"), ("a.com/x%2fy", "a.com/x%2Fy"), ("%61nn@a.com", "ann@a.com"),
            // Hosts.
            ("*.hostname.com:8000", "http://a.b.hostname.com:8000"), ("*.hostname.com:8000", "b.hostname.com:8000"),
            ("*", "http://anything"), ("*", "http://[::1]/"), ("*:8080", "http://[::1]:8080/"),
            ("[0:0::1]", "http://[::1]/"), ("[2001:db8::A]", "http://[2001:DB8:0::a]/"),
            // Ports.
            ("server.hostname.com:*/*", "https://server.hostname.com/a"),
            ("server.hostname.com:*/*", "http://server.hostname.com:1/a/b"), ("*:*", "https://a.com"),
            // Paths.
            ("a.com/a/*", "a.com/a"), ("a.com/a/*", "a.com/a/"), ("a.com/a/*", "a.com/a/b"),
            ("a.com/a/*", "a.com/a/b/c"), ("a.com/*", "a.com/a"), ("a.com/*", "a.com//a"), ("a.com/*/", "a.com/a/b"),
            // User info.
            ("*@*:*/*", "http://ann@a.com/x"), ("*@*:*/*", "http://ann:pw@a.com:1/x"), ("ann:*@a.com", "ann:pw@a.com"),
            ("ann:*@a.com", "ann:@a.com"), ("ann@a.com", "ann@a.com"), ("ann:pw@a.com", "ann:pw@a.com"),
            ("a.com", "@a.com"),
        ])
    func covers(pattern: String, uri: String) throws {
        let location = try Location(uri)
        #expect(try LocationPattern(pattern).covers(location))
    }

    @Test(
        "a location pattern covers no other locations",
        arguments: [
            ("foo.example.com", "https://foo.example.com"), ("foo.example.com", "http://foo.example.com:8080"),
            ("a.com/a", "a.com/A"), ("a.com/a%2Fb", "a.com/a/b"), ("a.com/a", "a.com/a/b"), ("a.com", "a.com/a"),
            ("*.hostname.com:8000", "http://hostname.com:8000"), ("*.hostname.com:8000", "http://b.hostname.com"),
            ("*.hostname.com", "xhostname.com"), ("*.hostname.com", "hostname.com.evil.org"),
            ("*", "http://a.com:81"), ("*", "https://a.com"), ("*", "http://a.com/x"), ("*", "http://ann@a.com"),
            ("server.hostname.com:*/*", "http://server.hostname.com"),
            ("server.hostname.com:*/*", "http://server.hostname.com//"), ("a.com/*", "a.com/"),
            ("a.com/a/*", "a.com/ab"),
            ("a.com/a/*", "a.com"), ("*@*:*/*", "http://a.com/x"), ("*@*:*/*", "http://@a.com/x"),
            ("*:*/*", "http://ann@a.com/x"), ("*:*", "http://a.com/x"), ("ann:*@a.com", "bob:pw@a.com"),
            ("ann:*@a.com", "ann@a.com"), ("ann@a.com", "ann:pw@a.com"), ("ann:pw@a.com", "ann:other@a.com"),
            ("a.com/a*", "a.com/ab"), ("[::1]", "[::2]"),
        ])
    func coversNot(pattern: String, uri: String) throws {
        let location = try Location(uri)
        #expect(try !LocationPattern(pattern).covers(location))
    }

    @Test(
        "a location pattern that can never match is refused with the reason",
        arguments: [
            ("a.*.com", "a * in the host must be its whole first label"),
            ("a*.com", "a * in the host must be its whole first label"),
            ("*.*.com", "a * in the host must be its whole first label"),
            ("a.com/*/b", "a * in the path must be its last segment"),
            ("*:password@a.com", "no password can follow the user *; *@ matches any user info"),
            ("a.com/a//b", "the path has an empty segment"), ("a.com//*", "the path has an empty segment"),
            ("", "names no host"), ("/a", "names no host"), ("http://", "names no host"), (":80", "names no host"),
            (".", "names no host"), ("ann@", "names no host"), ("a..com", "the host has an empty label"),
            ("*..com", "the host has an empty label"),
            ("a!.com", "the host holds a character that is not allowed in a host name"),
            ("ftp://a.com", "the scheme is not http, https, ws or wss"),
            ("a.com:0", "the port is not a number from 1 to 65535"),
            ("a.com:65536", "the port is not a number from 1 to 65535"),
            ("a.com:8*", "the port is not a number from 1 to 65535"),
            ("a.com:+8", "the port is not a number from 1 to 65535"),
            ("mailto:ann", "the port is not a number from 1 to 65535"),
            ("a.com/b c", "holds a character that is not allowed in a URI; percent-encode it"),
            ("bücher.example", "holds a character that is not allowed in a URI; percent-encode it"),
            ("a@b@c.com", "has two @ characters; write the one that is part of a password as %40"),
            ("[::1", "the bracket of the IPv6 address is not closed"),
            ("[*]", "the text between the brackets is not a valid IPv6 address"),
            ("[]", "the text between the brackets is not a valid IPv6 address"),
            ("*.[....", "an IPv6 address has no labels that a * could match"),
            ("*.[::1]", "an IPv6 address has no labels that a * could match"),
            ("[::1]x", "only a port may follow an IPv6 address"),
        ])
    func refuses(pattern: String, reason: String) {
        #expect(throws: LocationError(reason: reason)) { try LocationPattern(pattern) }
    }

    @Test("a URI has neither wildcards nor a missing host", arguments: ["*.a.com", "*", "a.com:*", "/x", "gopher://a"])
    func refusesURI(uri: String) {
        #expect(throws: LocationError.self) { try Location(uri) }
    }

    @Test("decoded digits after a lone percent sign form no other encoded character")
    func loneSigns() throws {
        let pattern = try LocationPattern("a/%%34%31")
        #expect(pattern.text == "a/%2541")
        #expect(try LocationPattern(pattern.text) == pattern)
        #expect(try !pattern.covers(Location("a/A")))
        #expect(try pattern.covers(Location("a/%%34%31")))
        #expect(try LocationPattern("a/%") == LocationPattern("a/%25"))
    }

    @Test(
        "a text without a colon in brackets is not an IPv6 address of a pattern",
        arguments: ["[8]", "[]", "[::1.]", "[:::]", "[.]", "[ab]:80"])
    func brackets(_ text: String) {
        #expect(throws: LocationError.self) { try Location(text) }
        #expect(throws: LocationError.self) { try LocationPattern(text) }
    }

    @Test("an address and its text make equal locations")
    func fromWebURL() throws {
        for text in ["https://A.example.com./a/%62//", "http://[::1]:8080/x?y", "http://a.com"] {
            let url = try #require(WebURL(text))
            #expect(Location(url) == (try Location(text)))
        }
    }

    @Test("neither a pattern nor a location prints its password")
    func hidesPasswords() throws {
        #expect(try LocationPattern("ann:pw@a.com/x").description == "ann:<redacted>@a.com/x")
        #expect(try LocationPattern("ann:pw@a.com/x").text == "ann:pw@a.com/x")
        #expect(try Location("ann:pw@a.com:81/x").description == "ann:<redacted>@a.com:81/x")
    }
}
