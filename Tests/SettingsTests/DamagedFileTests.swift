// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Settings
import SettingsReading
import TestSupport
import Testing

@Suite("Damaged files")
struct DamagedFileTests {
    @Test("reading a damaged file ends with settings, or with an error that has a position")
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
