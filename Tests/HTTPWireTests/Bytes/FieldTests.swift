// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

@testable import HTTPWire

/// Returns the number of runs in `raw`, the head of a response, and the text that they write.
private func runs(_ raw: String, keeping isKept: (FieldLine) -> Bool = { _ in true }) throws -> (Int, String) {
    let bytes = latin1(raw)
    var scanner = ResponseHeadScanner()
    try scanner.scan(bytes.span)
    var run = FieldRun(statusLineOf: scanner.head)
    var output = ByteQueue()
    var count = 1
    for line in scanner.head.fields where isKept(line) {
        if run.add(line) { continue }
        run.taken(by: line).append(of: bytes.span, to: &output)
        count += 1
    }
    run.append(of: bytes.span, to: &output)
    return (count, output.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) })
}

@Test("consecutive lines are one field run, starting with the status line")
func wholeRun() throws {
    let (count, text) = try runs("HTTP/1.1 200 OK\r\nServer: a\r\nX: b\r\nEmpty:\r\n\r\n")
    #expect(count == 1)
    #expect(text == "HTTP/1.1 200 OK\r\nServer: a\r\nX: b\r\nEmpty:\r\n")
}

@Test("a skipped line separates two field runs and is not written")
func partedRun() throws {
    let (count, text) = try runs("HTTP/1.1 200 OK\r\nServer: a\r\nVia: b\r\nX: c\r\n\r\n") { $0.kind != .via }
    #expect(count == 2)
    #expect(text == "HTTP/1.1 200 OK\r\nServer: a\r\nX: c\r\n")
}

@Test("white space after a value separates two field runs and is not written")
func blanksInRun() throws {
    let (count, text) = try runs("HTTP/1.1 200 OK\r\nServer: a \t\r\nX:  \r\nY:\tb\r\n\r\n")
    #expect(count == 3)
    #expect(text == "HTTP/1.1 200 OK\r\nServer: a\r\nX:\r\nY:\tb\r\n")
}

@Test(
    "a status line that must be rewritten is not part of a field run",
    arguments: ["HTTP/1.0 200 OK", "HTTP/1.2 200 OK", "HTTP/2 200", "HTTP/1.1 200 ", "HTTP/1.1 200"])
func statusLineInNoRun(line: String) throws {
    #expect(try runs("\(line)\r\nX: a\r\n\r\n").1 == "X: a\r\n")
}

@Test("a field run that is empty or beyond the bytes writes nothing")
func emptyRun() throws {
    var output = ByteQueue()
    FieldRun().append(of: latin1("X: a\r\n").span, to: &output)
    var scanner = ResponseHeadScanner()
    try scanner.scan(latin1("HTTP/1.1 200 OK\r\nX: a\r\n\r\n").span)
    FieldRun(statusLineOf: scanner.head).append(of: latin1("HTTP").span, to: &output)
    let isEmpty = output.isEmpty
    #expect(isEmpty)
}

@Test(
    "a field line is plain if it has one space before its value, or no value",
    arguments: [("X: a", true), ("X:", true), ("X:  ", true), ("X:a", false), ("X:  a", false), ("X:\ta", false)])
func plainLine(line: String, isPlain: Bool) throws {
    let raw = latin1("HTTP/1.1 200 OK\r\n\(line)\r\n\r\n")
    var scanner = ResponseHeadScanner()
    try scanner.scan(raw.span)
    #expect(scanner.head.fields[0].isPlain(in: raw.span) == isPlain)
}

private func kind(_ name: String) -> FieldName {
    let bytes = latin1(name)
    return FieldName(bytes.span, ByteRange(start: 0, end: bytes.count))
}

/// Returns the field name as in HTTP: `setCookie` as `set-cookie`.
private func spelling(_ name: FieldName) -> String {
    String(describing: name).map { $0.isUppercase ? "-\($0.lowercased())" : String($0) }.joined()
}

@Test("every known field is found by its name in any case", arguments: FieldName.allCases.filter { $0 != .other })
func knownNames(_ name: FieldName) {
    let text = spelling(name)
    #expect(kind(text) == name)
    #expect(kind(text.uppercased()) == name)
    #expect(kind(text + "x") == .other || kind(text + "x") != name)
    #expect(kind(String(text.dropLast())) != name)
    #expect(kind(text.replacingLastLetter()) != name)
    #expect(kind(text.split(separator: "-").joined(separator: "_")) == (text.contains("-") ? .other : name))
}

@Test("an unknown field name is other")
func unknownNames() {
    for name in ["", "x", "hosts", "hos", "content-lengths", "x-request-id", "contentlength", "\u{E9}ge", "ag\u{5}"] {
        #expect(kind(name) == .other, "\(name)")
    }
}

extension String {
    fileprivate func replacingLastLetter() -> String { dropLast() + "~" }
}

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
