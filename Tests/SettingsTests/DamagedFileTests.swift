// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import Testing

@Suite("Damaged files")
struct DamagedFileTests {
    @Test("whatever is damaged, reading ends with settings or with an error that has a place")
    func damage() {
        var random = SplitMix(state: 7)
        let intact = Array(everything.utf8)
        let signs = Array("{}[]:,-#*&!|>'\"%@`$\t\n 0a\u{0}".utf8) + [0xFF, 0xC3]
        var failures = 0
        for _ in 0..<150 {
            var bytes = intact
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<4, using: &random) {
                case 0: bytes.remove(at: index)
                case 1: bytes.insert(signs.randomElement(using: &random) ?? 0, at: index)
                case 2: bytes[index] = signs.randomElement(using: &random) ?? 0
                default: bytes.removeSubrange(index..<min(index + 40, bytes.count))
                }
            }
            let (settings, problems) = Settings.parse(bytes, file: "f", environment: [:])
            let errors = problems.filter { $0.severity == .error }
            #expect((settings == nil) == !errors.isEmpty)
            #expect(errors.allSatisfy { $0.mark != nil })
            failures += errors.isEmpty ? 0 : 1
        }
        #expect(failures > 75)
    }
}

/// The same numbers in every run.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
