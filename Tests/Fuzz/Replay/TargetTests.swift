// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

/// What fuzzers were given to begin with, and each input that they found something with, in every run of the tests.
@Suite("Fuzzed seeds")
struct SeedTests {
    @Test("no seed breaks a rule, nor does one cut short or with a byte changed", arguments: FuzzTarget.all)
    func seeds(_ target: FuzzTarget) throws {
        let seeds = try Seeds.of(target.name)
        #expect(seeds.count >= 10)
        for seed in seeds {
            #expect(throws: Never.self, "\(seed.description)") { try target.run(seed.bytes.span) }
            var dice = Dice(seed.bytes.span)
            for _ in 0..<8 where !seed.bytes.isEmpty {
                var changed = Array(seed.bytes.prefix(1 + dice.below(seed.bytes.count)))
                changed[dice.below(changed.count)] = UInt8(dice.below(256))
                #expect(throws: Never.self, "\(seed.description), changed to \(changed)") {
                    try target.run(changed.span)
                }
            }
        }
    }

    @Test("each target has a pack of seeds, and there are no others")
    func packs() {
        let targets = FuzzTarget.all.map(\.name).sorted()
        #expect(Seeds.names(in: "\(Seeds.folder)/packed") == targets.map { "\($0).seeds" })
    }

    @Test("no target has a seed or a seed's name twice", arguments: FuzzTarget.all)
    func differ(_ target: FuzzTarget) throws {
        let seeds = try Seeds.of(target.name)
        let byBytes = Dictionary(grouping: seeds, by: \.bytes).values
        let byName = Dictionary(grouping: seeds, by: \.name).values
        for same in Array(byBytes) + Array(byName) where same.count > 1 {
            Issue.record("the same: \(same.map(\.description).joined(separator: "; "))")
        }
    }
}

/// Some sentences of each grammar, the same in every run of the tests; `Tests/Fuzz/grammar` speaks as many as one has time for.
@Suite("Grammars")
struct GrammarTests {
    @Test("a sentence is understood as what it means, or refused where it means nothing", arguments: Grammar.all)
    func sentences(_ grammar: Grammar) {
        // Of the slow ones fewer.
        let count: UInt64 = grammar.period < 64 ? 100 : 1_000
        for (seeds, isThorough) in [(0..<count, false), (count..<count + 50, true)] {
            do throws(Misunderstanding) {
                try grammar.speak(seeds, isThorough) { _ in }
            } catch {
                Issue.record("\(error.rule): \(String(decoding: error.sentence, as: UTF8.self)), seed \(error.seed)")
            }
        }
    }

    @Test("a seed makes the same sentence each time, and another one than its neighbour", arguments: Grammar.all)
    func seeds(_ grammar: Grammar) {
        let sentences = (0..<64).map { grammar.sentence($0) }
        #expect(sentences == (0..<64).map { grammar.sentence($0) })
        #expect(Set(sentences).count > 32)
    }
}

/// `Tests/Fuzz/grammar --growth` measures the same in a release build, and what a byte costs.
@Suite("The time that readers take", .serialized)
struct GrowthTests {
    @Test(
        "eight times the text takes eight times as long, whatever somebody writes to make it slow",
        arguments: Growth.all)
    func growth(_ growth: Growth) {
        #expect(throws: Never.self, "\(growth.name)") { try growth.check(isTimed: false) }
    }
}
