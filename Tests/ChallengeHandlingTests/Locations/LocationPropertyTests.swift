// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

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

/// Random texts over a vocabulary so small that they meet each other.
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
