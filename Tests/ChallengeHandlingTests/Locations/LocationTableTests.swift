// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

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
