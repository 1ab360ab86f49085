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
