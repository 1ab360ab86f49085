// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Suite("Fields as text")
struct ShortRunsTests {
    private func text(_ string: String) -> String {
        let bytes = Array(string.utf8)
        return bytes.span.text(ByteRange(start: 0, end: bytes.count))
    }

    @Test("long runs of combining marks are broken, for they take long to compare; all else stays as it is")
    func marks() {
        for plain in ["", "text/plain", "Grüße", "日本語", "e\u{301}", "a" + String(repeating: "\u{300}", count: 30)] {
            #expect(Array(text(plain).utf8) == Array(plain.utf8))
        }
        let long = text("a" + String(repeating: "\u{300}\u{316}", count: 1000) + "b")
        var run = 0
        for scalar in long.unicodeScalars {
            run = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : run + 1
            #expect(run <= 30)
        }
        #expect(long.unicodeScalars.count { $0 == "\u{FFFD}" } == 66 && long.hasSuffix("b"))
    }
}
