// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Test("a range holds positions up to four GiB and never ends before it starts")
func ranges() {
    let range = ByteRange(start: 3, end: 7)
    #expect((range.start, range.end, range.count, range.isEmpty) == (3, 7, 4, false))
    #expect(range.bounds == 3..<7)
    #expect(ByteRange(start: 7, end: 3).isEmpty)
    #expect(ByteRange(start: -5, end: 3).start == 0)
    #expect(ByteRange(start: 0, end: .max).end == Int(UInt32.max))
    #expect(MemoryLayout<ByteRange>.size == 8)
}

@Test("a copy of a byte range leaves out positions beyond the end")
func copies() {
    let bytes: [UInt8] = [1, 2, 3]
    #expect(bytes.span.copy(ByteRange(start: 1, end: 9)) == [2, 3])
    #expect(bytes.span.copy(ByteRange(start: 5, end: 9)) == [])
}

@Test("names are compared ignoring the case of ASCII letters only")
func comparisons() {
    let bytes = latin1("Ab-@`[{\u{E9}\u{C9}")
    func matches(_ start: Int, _ end: Int, _ literal: StaticString) -> Bool {
        bytes.span.matches(ByteRange(start: start, end: end), ignoringCase: literal)
    }
    #expect(matches(0, 3, "ab-"))
    #expect(!matches(0, 2, "ab-"))
    #expect(!matches(3, 4, "`"))
    #expect(!matches(5, 6, "{"))
    #expect(!matches(8, 10, "aa"))
    let (one, two) = (ByteRange(start: 0, end: 2), ByteRange(start: 8, end: 10))
    func same(_ first: ByteRange, _ second: ByteRange) -> Bool { bytes.span.matches(first, ignoringCase: second) }
    #expect(same(one, one))
    #expect(!same(ByteRange(start: 7, end: 8), ByteRange(start: 8, end: 9)))
    #expect(!same(one, two))
    func exactly(_ literal: StaticString) -> Bool { bytes.span.matches(one, exactly: literal) }
    #expect(!exactly("ab"))
    #expect(exactly("Ab"))
}

@Test(
    "every byte at every position of a long name is compared correctly",
    arguments: ["content-length", "z{a`@[-_", "~09!az|^}"] as [StaticString])
func longComparisons(literal: StaticString) {
    let name = Array("\(literal)".utf8)
    for position in name.indices {
        for byte in UInt8.min...UInt8.max {
            var bytes = [0xFF] + name + [0xFF]
            bytes[position + 1] = byte
            let isSame = bytes.span.matches(ByteRange(start: 1, end: name.count + 1), ignoringCase: literal)
            let lower = (0x41...0x5A).contains(byte) ? byte | 0x20 : byte
            guard isSame != (lower == name[position]) else { continue }
            Issue.record("\(byte) at \(position) of \(literal)")
        }
    }
}

@Test("Span.contains finds a literal at every position")
func contained() {
    func contains(_ text: String, _ literal: StaticString) -> Bool { latin1(text).span.contains(literal) }
    for text in ["abc", "abcx", "xabc", "ababc", "aabcabc"] { #expect(contains(text, "abc"), "\(text)") }
    for text in ["", "ab", "abxc", "ABC", "bc", "ab"] { #expect(!contains(text, "abc"), "\(text)") }
    #expect(contains("a", ""))
}

@Test("a decimal number consists of digits only and fits in 64 bits")
func decimals() {
    func decimal(_ text: String) -> UInt64? {
        let bytes = latin1(text)
        return bytes.span.decimal(ByteRange(start: 0, end: bytes.count))
    }
    #expect(decimal("0") == 0)
    #expect(decimal("007") == 7)
    #expect(decimal("18446744073709551615") == .max)
    for text in ["", "-1", "+1", " 1", "1 ", "1,2", "1.0", "0x1", "a", "18446744073709551616", "99999999999999999999"] {
        #expect(decimal(text) == nil, "\(text)")
    }
    let bytes = latin1("12")
    let beyond = bytes.span.decimal(ByteRange(start: 0, end: 3))
    #expect(beyond == nil)
}
