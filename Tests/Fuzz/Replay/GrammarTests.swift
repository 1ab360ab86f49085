// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

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
