// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// Returns the head of a response that must be accepted.
private func scanned(_ raw: String, sourceLocation: SourceLocation = #_sourceLocation) throws -> ResponseHead {
    var scanner = ResponseHeadScanner()
    try scanner.scan(latin1(raw).span)
    return scanner.head
}

/// Returns the rule that the head of a response breaks.
private func refusal(_ raw: String) -> WireErrorCode? {
    var scanner = ResponseHeadScanner()
    do throws(WireError) {
        try scanner.scan(latin1(raw).span)
        return nil
    } catch {
        #expect(error.status == 502)
        return error.code
    }
}

@Test("a response head is parsed into status, reason and fields")
func typicalResponse() throws {
    let raw =
        "HTTP/1.1 404 Not \u{E9} Found\r\nServer: a\r\nX:  b \r\nContent-Length: 5\r\nConnection: close, x\r\n\r\n"
    let head = try scanned(raw)
    let bytes = latin1(raw)
    #expect(head.status == 404)
    #expect((head.majorVersion, head.minorVersion) == (1, 1))
    #expect(bytes.span.copy(head.reason) == latin1("Not \u{E9} Found"))
    #expect(head.fields.map { text($0.name, in: bytes) } == ["Server", "X", "Content-Length", "Connection"])
    #expect(head.fields.map { text($0.value, in: bytes) } == ["a", "b", "5", "close, x"])
    #expect(head.fields.map(\.isHopByHop) == [false, true, false, true])
    #expect(head.contentLength == 5)
    #expect(!head.isChunked)
    #expect(head.closes)
    #expect(head.first(.server) == head.fields[0])
    #expect(head.first(.date) == nil)
}

@Test("status lines are parsed in the forms that servers and libcurl write")
func statusLinesOfUpstreams() throws {
    for (line, status, major, minor) in [
        ("HTTP/1.1 200 OK", 200, 1, 1), ("HTTP/1.0 200 OK", 200, 1, 0), ("HTTP/1.1 200 ", 200, 1, 1),
        ("HTTP/1.1 200", 200, 1, 1), ("HTTP/2 204 ", 204, 2, 0), ("HTTP/2 204", 204, 2, 0), ("HTTP/3 304 ", 304, 3, 0),
        ("HTTP/2.0 200 ", 200, 2, 0), ("HTTP/1.1 999 A", 999, 1, 1),
    ] {
        let head = try scanned(line + "\r\n\r\n")
        #expect((head.status, head.majorVersion, head.minorVersion) == (status, major, minor), "\(line)")
    }
}

@Test("a response head without its empty line is complete")
func withoutEmptyLine() throws {
    #expect(try scanned("HTTP/1.1 200 OK\r\n").status == 200)
    #expect(try scanned("HTTP/1.1 200 OK\r\nA: b\r\n").fields.count == 1)
}

@Test("1xx responses are interim, except 101")
func interim() throws {
    #expect(try scanned("HTTP/1.1 100 Continue\r\n\r\n").isInterim)
    #expect(try scanned("HTTP/1.1 103 Early Hints\r\n\r\n").isInterim)
    #expect(try !scanned("HTTP/1.1 101 Switching Protocols\r\n\r\n").isInterim)
    #expect(try !scanned("HTTP/1.1 200 OK\r\n\r\n").isInterim)
}

@Test(
    "a malformed status line is refused",
    arguments: [
        "", "\r\n\r\n", "HTTP/1.1\r\n\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n", "HTTP/1.1 099 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 -20 OK\r\n\r\n",
        "HTTP/1.1\t200 OK\r\n\r\n", "HTTP/1.1 200\tOK\r\n\r\n", "HTTP/1 200 OK\r\n\r\n", "HTTP/4 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n", "http/1.1 200 OK\r\n\r\n", "ICY 200 OK\r\n\r\n", "HTTP/1.1 200 O\rK\r\n\r\n",
        "HTTP/1.1 200 O\u{0}K\r\n\r\n", "HTTP/1.x 200 OK\r\n\r\n", " HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\r\n",
        "A: b\r\n\r\n",
    ])
func malformedStatusLines(_ raw: String) {
    #expect(refusal(raw) == .statusLineInvalid)
}

@Test("malformed field lines of a response are refused")
func malformedFields() {
    for (lines, code): (String, WireErrorCode) in [
        ("A", .fieldColonMissing), (": b", .fieldNameInvalid), ("A : b", .fieldSpaceBeforeColon),
        ("A B: c", .fieldNameInvalid), ("A: b\r\n c", .fieldsFolded), ("A: b\r\n\tc", .fieldsFolded),
        (" A: b", .fieldLeadingSpace), ("A: b\u{0}", .fieldValueInvalid), ("A: b\rc", .fieldValueInvalid),
        ("A: b\r", .fieldValueInvalid), ("A: b\nC: d", .bareLineFeed), ("A: b\r\n\r\nC: d", .fieldNameInvalid),
        ("A\u{E9}: b", .fieldNameInvalid), ("Connection: a b", .connectionInvalid),
        ("Content-Length : 5", .fieldSpaceBeforeColon),
    ] {
        #expect(refusal("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n") == code, "\(lines)")
    }
    #expect(refusal("HTTP/1.1 200 OK\r\nA: b") == .bareLineFeed)
    #expect(refusal("HTTP/1.1 200 OK\n\n") == .bareLineFeed)
}

@Test("a response may repeat Content-Length only with the same value")
func responseLengths() throws {
    func length(_ lines: String) throws -> UInt64? { try scanned("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n").contentLength }
    #expect(try length("Content-Length: 5") == 5)
    #expect(try length("Content-Length: 5, 5") == 5)
    #expect(try length("Content-Length: 5\r\nContent-Length: 5") == 5)
    #expect(try length("Content-Length: 05\r\nContent-Length: 5") == 5)
    #expect(try length("A: b") == nil)
    for (value, code): (String, WireErrorCode) in [
        ("5, 6", .contentLengthRepeated), ("5\r\nContent-Length: 6", .contentLengthRepeated),
        ("", .contentLengthInvalid), (",", .contentLengthInvalid), ("+5", .contentLengthInvalid),
        ("-5", .contentLengthInvalid), ("5 5", .contentLengthInvalid), ("0x5", .contentLengthInvalid),
        ("9223372036854775808", .contentLengthTooLarge), ("18446744073709551621", .contentLengthTooLarge),
    ] {
        #expect(refusal("HTTP/1.1 200 OK\r\nContent-Length: \(value)\r\n\r\n") == code, "\(value)")
    }
}

@Test("a response may have chunked only, and not together with Content-Length")
func responseEncodings() throws {
    #expect(try scanned("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n").isChunked)
    for (lines, code): (String, WireErrorCode) in [
        ("Transfer-Encoding: gzip, chunked", .transferEncodingInvalid),
        ("Transfer-Encoding:", .transferEncodingInvalid),
        ("Transfer-Encoding: identity", .transferEncodingInvalid),
        ("Transfer-Encoding: chunked, chunked", .transferEncodingInvalid),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .transferEncodingInvalid),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", .lengthAndEncoding),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", .lengthAndEncoding),
    ] {
        #expect(refusal("HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n") == code, "\(lines)")
    }
    #expect(refusal("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n") == .transferEncodingOldVersion)
    #expect(refusal("HTTP/2 200 \r\ntransfer-encoding: chunked\r\n\r\n") == .transferEncodingOldVersion)
}

@Test("response heads beyond the limits are refused")
func responseLimits() {
    var scanner = ResponseHeadScanner(limits: HeadLimits(head: 100, fieldCount: 2))
    func code(_ raw: String) -> WireErrorCode? {
        do throws(WireError) { try scanner.scan(latin1(raw).span) } catch { return error.code }
        return nil
    }
    #expect(code("HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\n\r\n") == nil)
    #expect(code("HTTP/1.1 200 OK\r\nA: b\r\nA: b\r\nA: b\r\n\r\n") == .fieldsTooMany)
    #expect(code("HTTP/1.1 200 OK\r\nA: " + String(repeating: "b", count: 100) + "\r\n\r\n") == .headTooLarge)
}

@Test("a scan of a response head forgets the previous one")
func scannerForgets() throws {
    var scanner = ResponseHeadScanner()
    try scanner.scan(
        latin1("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close, a\r\nA: b\r\n\r\n").span)
    try scanner.scan(latin1("HTTP/1.1 204 No\r\nA: b\r\n\r\n").span)
    #expect(scanner.head.status == 204)
    #expect(scanner.head.contentLength == nil)
    #expect(!scanner.head.closes)
    #expect(scanner.head.fields.count == 1)
    #expect(scanner.head.fields.allSatisfy { !$0.isHopByHop })
}

@Test("a written response head is scanned to the same values")
func roundTrip() throws {
    for status in 100...999 {
        var queue = ByteQueue()
        ResponseWriter.statusLine(status, to: &queue)
        ResponseWriter.field("Server", "countersign", to: &queue)
        ResponseWriter.field("X-Text", String(repeating: "\u{E9}", count: status % 7), to: &queue)
        ResponseWriter.contentLength(UInt64(status), to: &queue)
        ResponseWriter.connection(keepsAlive: false, to: .http11, in: &queue)
        ResponseWriter.endOfHead(to: &queue)
        var scanner = ResponseHeadScanner()
        try queue.withSpan { bytes throws(WireError) in try scanner.scan(bytes) }
        #expect(scanner.head.status == status)
        #expect(scanner.head.contentLength == UInt64(status))
        #expect(scanner.head.fields.map(\.kind) == [.server, .other, .contentLength, .connection])
        #expect(scanner.head.fields[1].value.count == status % 7 * 2)
        let reason = queue.withSpan { $0.text(scanner.head.reason) }
        #expect(reason == String(describing: ReasonPhrase.of(status)))
    }
}
