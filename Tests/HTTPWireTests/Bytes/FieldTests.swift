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
