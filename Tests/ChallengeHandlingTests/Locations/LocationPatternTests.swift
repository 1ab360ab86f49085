// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Location patterns")
struct LocationPatternTests {
    @Test(
        "a location pattern covers the locations of its rules",
        arguments: [
            // The scheme supplies the default port and is not compared.
            ("foo.example.com", "http://foo.example.com"), ("foo.example.com", "ws://foo.example.com"),
            ("https://foo.example.com:80", "http://foo.example.com"), ("wss://a.com", "https://a.com:443/"),
            ("a.com:443", "https://a.com"), ("HTTPS://a.com", "wss://a.com"), ("a.com:", "a.com:80"),
            // Query, fragment and trailing slashes are ignored.
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

@Suite("Location patterns, by many examples")
struct LocationPropertyTests {
    @Test("a printed location pattern parses to an equal pattern")
    func roundTrip() throws {
        var examples = Examples(seed: 1)
        for _ in 0..<2000 {
            let pattern = try LocationPattern(examples.pattern())
            #expect(try LocationPattern(pattern.text) == pattern, "\(pattern.text)")
        }
    }

    @Test("of the patterns that cover a location exactly one takes precedence over all others")
    func oneWinner() throws {
        var examples = Examples(seed: 2)
        var contested = 0
        for _ in 0..<500 {
            let patterns = try Set((0..<40).map { _ in try LocationPattern(examples.pattern()) })
            let location = try Location(examples.uri())
            let covering = patterns.filter { $0.covers(location) }
            let winners = covering.filter { one in
                covering.allSatisfy { $0 == one || (one.isMoreSpecific(than: $0) && !$0.isMoreSpecific(than: one)) }
            }
            #expect(winners.count == min(covering.count, 1), "\(location): \(covering)")
            contested += covering.count > 1 ? 1 : 0
        }
        #expect(contested > 50, "the examples must put the rule to the test")
    }

    @Test("a location table finds the most specific pattern in any order of registration")
    func orderDoesNotMatter() throws {
        var examples = Examples(seed: 3)
        for _ in 0..<200 {
            let patterns = try Array(Set((0..<20).map { _ in try LocationPattern(examples.pattern()) }))
            let location = try Location(examples.uri())
            var forward = LocationTable<Int>()
            var backward = LocationTable<Int>()
            for (index, pattern) in patterns.enumerated() { forward.register(index, at: pattern) }
            for (index, pattern) in patterns.enumerated().reversed() { backward.register(index, at: pattern) }
            #expect(forward.match(location)?.pattern == backward.match(location)?.pattern)
            let winner = patterns.first { one in
                one.covers(location)
                    && patterns.allSatisfy { $0 == one || !$0.covers(location) || one.isMoreSpecific(than: $0) }
            }
            #expect(forward.match(location)?.pattern == winner)
        }
    }

    @Test("a location table agrees with a scan of its patterns, while patterns come and go")
    func plainScan() throws {
        var examples = Examples(seed: 5)
        for _ in 0..<1000 {
            var table = LocationTable<Int>()
            var plain: [(pattern: LocationPattern, number: Int)] = []
            for number in 0..<25 {
                let pattern = try LocationPattern(examples.pattern())
                if number % 5 == 4, let (gone, handler) = plain.first {
                    table.unregister(handler, at: gone)
                    plain.removeFirst()
                }
                table.register(number, at: pattern)
                plain.append((pattern, number))
                let location = try Location(examples.uri())
                let covering = plain.filter { $0.pattern.covers(location) }
                let winner = covering.first { one in
                    covering.allSatisfy { $0.pattern == one.pattern || one.pattern.isMoreSpecific(than: $0.pattern) }
                }
                let match = table.match(location)
                #expect(match?.pattern == winner?.pattern)
                #expect(match?.handlers ?? [] == covering.filter { $0.pattern == winner?.pattern }.map(\.number))
                #expect(table.all(covering: location).sorted() == covering.map(\.number))
            }
            let patterns = table.patterns
            #expect(Set(patterns) == Set(plain.map(\.pattern)))
            for (first, second) in zip(patterns, patterns.dropFirst()) {
                #expect(!second.isMoreSpecific(than: first))
            }
        }
    }

    @Test("the addresses below which a pattern covers something are those that a scan finds")
    func bases() throws {
        var examples = Examples(seed: 6)
        var found = 0
        for _ in 0..<2000 {
            let bases = try (0..<8).map { _ in try Location(examples.uri()) }
            let index = LocationBases(bases)
            let pattern = try LocationPattern(examples.pattern())
            let covered = bases.indices.filter { pattern.coversSomething(below: bases[$0]) }
            #expect(index.covered(by: pattern) == covered, "\(pattern): \(bases)")
            #expect(index.areCovered(by: pattern) != covered.isEmpty)
            found += covered.count
        }
        #expect(found > 200)
    }

    @Test("the path of a location leads to few nodes, however many patterns there are")
    func constant() throws {
        var tree = PartTree(empty: 0)
        for number in 0..<10_000 { tree.update(["app\(number)", "v1"]) { $0 = number } }
        #expect(tree.nodes(along: ["app9999", "v1", "orders", "1"]).count == 3)
        #expect(tree.nodes(along: ["app9999", "v1"]).last.map { tree[$0] } == 9999)
        #expect(tree.nodes(along: (0..<4000).map { "\($0)" }) == [0])
    }

    @Test("no text traps the parser of location patterns")
    func anyText() {
        var examples = Examples(seed: 4)
        var accepted = 0
        for _ in 0..<5000 {
            let text = examples.noise()
            if let pattern = try? LocationPattern(text) {
                accepted += 1
                #expect(throws: Never.self) { try LocationPattern(pattern.text) }
            }
            _ = try? Location(text)
        }
        #expect(accepted > 0)
    }
}

/// Random texts over a small vocabulary, so that patterns and addresses often match.
private struct Examples {
    private var random: SplitMix

    init(seed: UInt64) { random = SplitMix(state: seed) }

    mutating func pattern() -> String {
        let user = pick(["", "", "*@", "ann@", "ann:*@", "ann:pw@", "b%41@"])
        let host = pick(["*", "*.com", "*.a.com", "a.com", "b.a.com", "[::1]", "*.b.a.com", "B.A.com."])
        let port = pick(["", "", ":*", ":*", ":81", ":443"])
        let path = pick(["", "/", "/*", "/x", "/x/*", "/x/y", "/%78/y/*", "/x%2f", "/a*"])
        return pick(["", "", "https://", "ws://"]) + user + host + port + path
    }

    mutating func uri() -> String {
        let user = pick(["", "", "ann@", "ann:pw@", "ann:no@"])
        let host = pick(["a.com", "b.a.com", "c.b.a.com", "[::1]", "com"])
        return "http://" + user + host + pick(["", ":81", ":443"]) + pick(["", "/x", "/x/y", "/x/y/z", "/z"])
    }

    mutating func noise() -> String {
        let signs = [
            "a", "b.c", "*", ".", ":", "/", "@", "[", "]", "%", "%4", "%61", "://", "http", "8", "?", "#", "é", " ",
        ]
        return (0..<Int.random(in: 0...8, using: &random)).map { _ in pick(signs) }.joined()
    }

    private mutating func pick(_ choices: [String]) -> String {
        choices.randomElement(using: &random) ?? ""
    }
}

@Suite("Location tables")
struct LocationTableTests {
    @Test(
        "the most specific location pattern takes precedence, part by part",
        arguments: [
            // winner, loser, a URI that both cover
            ("a.b.com", "*.b.com", "a.b.com"), ("*.b.com", "*.com", "a.b.com"), ("*.com", "*", "a.b.com"),
            ("a.com", "a.com:*", "a.com"), ("a.com/x", "a.com/*", "a.com/x"), ("a.com/x", "a.com/x/*", "a.com/x"),
            ("a.com/x/*", "a.com/*", "a.com/x/y"), ("ann:pw@a.com", "ann:*@a.com", "ann:pw@a.com"),
            ("ann:*@a.com", "*@a.com", "ann:pw@a.com"), ("ann@a.com", "*@a.com", "ann@a.com"),
            // An earlier part outweighs all later ones.
            ("a.com:*/*", "*:80/x", "a.com/x"), ("*.b.com:*/*", "*.com:80/x", "a.b.com/x"),
            ("a.com:80/*", "a.com:*/x", "a.com/x"), ("*@a.com/x", "ann@a.com/*", "ann@a.com/x"),
        ])
    func specificity(winner: String, loser: String, uri: String) throws {
        let (winner, loser) = (try LocationPattern(winner), try LocationPattern(loser))
        #expect(winner.isMoreSpecific(than: loser))
        #expect(!loser.isMoreSpecific(than: winner))
        var table = LocationTable<String>()
        table.register("loser", at: loser)
        table.register("winner", at: winner)
        let match = try #require(table.match(Location(uri)))
        #expect(match.pattern == winner)
        #expect(match.handlers == ["winner"], "the more specific pattern hides the other altogether")
    }

    @Test("handlers at one pattern are in the order of registration, however the pattern was written")
    func registrationOrder() throws {
        var table = LocationTable<String>()
        table.register("first", at: try LocationPattern("https://A.com/x/"))
        table.register("second", at: try LocationPattern("a.com:443/x"))
        #expect(table.patterns.count == 1)
        #expect(try table.match(Location("https://a.com/x"))?.handlers == ["first", "second"])
    }

    @Test("unregister removes one registration and leaves the others")
    func unregisterOne() throws {
        var table = LocationTable<String>()
        let pattern = try LocationPattern("a.com")
        for handler in ["one", "two", "one"] { table.register(handler, at: pattern) }
        table.unregister("one", at: try LocationPattern("http://a.com/"))
        #expect(try table.match(Location("a.com"))?.handlers == ["two", "one"])
    }

    @Test("unregister does nothing if the handler or the pattern is unknown")
    func unregisterNone() throws {
        var table = LocationTable<String>()
        table.register("one", at: try LocationPattern("*.com"))
        table.unregister("two", at: try LocationPattern("*.com"))
        table.unregister("one", at: try LocationPattern("a.com"))
        #expect(try table.match(Location("a.com"))?.handlers == ["one"], "no hole is punched into a wildcard")
    }

    @Test("after the last handler of a pattern is removed, a wildcard matches again")
    func unregisterLast() throws {
        var table = LocationTable<String>()
        table.register("wide", at: try LocationPattern("*.com"))
        table.register("narrow", at: try LocationPattern("a.com"))
        table.unregister("narrow", at: try LocationPattern("a.com"))
        #expect(try table.match(Location("a.com"))?.handlers == ["wide"])
    }

    @Test("*.example.com and example.com:* can both be registered")
    func noLostRegistration() throws {
        var table = LocationTable<String>()
        table.register("below", at: try LocationPattern("*.example.com"))
        table.register("port", at: try LocationPattern("example.com:*"))
        #expect(try table.match(Location("a.example.com"))?.handlers == ["below"])
        #expect(try table.match(Location("example.com:8080"))?.handlers == ["port"])
    }

    @Test("a location that no pattern covers has no handlers")
    func nobody() throws {
        var table = LocationTable<String>()
        table.register("one", at: try LocationPattern("a.com"))
        #expect(try table.match(Location("b.com")) == nil)
    }
}
