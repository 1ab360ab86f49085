// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

@testable import HTTPWire

@Suite("Fields as text")
struct ShortRunsTests {
    private func text(_ string: String) -> String {
        let bytes = Array(string.utf8)
        return bytes.span.text(ByteRange(start: 0, end: bytes.count))
    }

    @Test("long runs of combining marks in a field are broken up, and other text is unchanged")
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

@Test("a byte that no field value may hold is found at every place beside every other byte")
func fieldValues() {
    for byte in UInt8.min...UInt8.max {
        for filler: UInt8 in [0x20, 0x21, 0x7E, 0x80, 0xFF, 0x09] {
            for position in 0..<19 {
                var bytes = [UInt8](repeating: filler, count: 19)
                bytes[position] = byte
                let accepted = bytes.span.isFieldValue(from: 0, to: 19)
                guard accepted != byte.isFieldValue else { continue }
                Issue.record("\(byte) at \(position) among \(filler)")
            }
        }
    }
    let bytes: [UInt8] = [0, 65, 0]
    let inside = bytes.span.isFieldValue(from: 1, to: 2)
    let beyond = bytes.span.isFieldValue(from: 1, to: 4)
    #expect(inside && !beyond)
}
