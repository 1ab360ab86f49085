// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// The runs that the lines of `raw`, a response's head, make, and what is written of them all.
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
