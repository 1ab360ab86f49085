// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// Returns the text that `write` appends.
private func written(_ write: (inout ByteQueue) -> Void) -> String {
    var queue = ByteQueue()
    write(&queue)
    return queue.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
}

@Test("a status line has the registered reason, or none and still its space")
func statusLines() {
    #expect(written { ResponseWriter.statusLine(200, to: &$0) } == "HTTP/1.1 200 OK\r\n")
    #expect(written { ResponseWriter.statusLine(431, to: &$0) } == "HTTP/1.1 431 Request Header Fields Too Large\r\n")
    #expect(written { ResponseWriter.statusLine(299, to: &$0) } == "HTTP/1.1 299 \r\n")
    for invalid in [-1, 0, 99, 1_000, Int.max, Int.min] {
        #expect(written { ResponseWriter.statusLine(invalid, to: &$0) } == "HTTP/1.1 500 Internal Server Error\r\n")
    }
}

@Test("an upstream's reason phrase is written unless it would split the status line")
func reasons() {
    func line(_ reason: String) -> String {
        written { queue in ResponseWriter.statusLine(404, reason: latin1(reason).span, to: &queue) }
    }
    #expect(line("Nothing \tthere") == "HTTP/1.1 404 Nothing \tthere\r\n")
    #expect(line("") == "HTTP/1.1 404 \r\n")
    #expect(line("No\r\nA: b") == "HTTP/1.1 404 Not Found\r\n")
    #expect(line("No\nA: b") == "HTTP/1.1 404 Not Found\r\n")
}

@Test("every overload of ResponseWriter.field writes the same line")
func fieldForms() {
    let value = "b \u{E9}"
    let bytes = Array(value.utf8)
    let name = String("A")
    #expect(written { ResponseWriter.field("A", value, to: &$0) } == "A: b \u{E9}\r\n")
    #expect(written { ResponseWriter.field(name, value, to: &$0) } == "A: b \u{E9}\r\n")
    #expect(written { ResponseWriter.field("A", bytes.span, to: &$0) } == "A: b \u{E9}\r\n")
    #expect(written { ResponseWriter.field(latin1("A").span, bytes.span, to: &$0) } == "A: b \u{E9}\r\n")
    #expect(written { ResponseWriter.field("A", "b", to: &$0) } == "A: b\r\n")
    #expect(written { ResponseWriter.field("A", Span(), to: &$0) } == "A: \r\n")
    #expect(
        written { ResponseWriter.field("A", decimal: 18_446_744_073_709_551_615, to: &$0) }
            == "A: 18446744073709551615\r\n")
    #expect(written { ResponseWriter.contentLength(0, to: &$0) } == "Content-Length: 0\r\n")
    #expect(written { ResponseWriter.transferEncodingChunked(to: &$0) } == "Transfer-Encoding: chunked\r\n")
    #expect(written { ResponseWriter.endOfHead(to: &$0) } == "\r\n")
}

@Test(
    "a field whose value would split a response is left out",
    arguments: [
        "\r", "\n", "\r\n", "a\r\nSet-Cookie: b", "a\u{0}", "\u{1}", "a\u{7F}", "a\u{B}b", "\r\n\r\n<html>",
    ])
func noSplitting(_ value: String) {
    let bytes = Array(value.utf8)
    var queue = ByteQueue()
    let answers = [
        ResponseWriter.field("A", value, to: &queue),
        ResponseWriter.field(String("A"), value, to: &queue),
        ResponseWriter.field(value, "a", to: &queue),
        ResponseWriter.field("A", bytes.span, to: &queue),
        ResponseWriter.field(latin1("A").span, bytes.span, to: &queue),
        ResponseWriter.field(bytes.span, latin1("a").span, to: &queue),
    ]
    #expect(answers == [false, false, false, false, false, false])
    #expect(queue.isEmpty == true)
}

@Test(
    "a response field whose name is not a token is left out", arguments: ["", " ", "a b", "a:", "a\t", "\u{E9}", "(a)"])
func noBadNames(_ name: String) {
    var queue = ByteQueue()
    let byText = ResponseWriter.field(name, String("a"), to: &queue)
    let byBytes = ResponseWriter.field(Array(name.utf8).span, latin1("a").span, to: &queue)
    #expect(!byText && !byBytes)
    #expect(queue.isEmpty == true)
}

@Test("each HTTP version gets the Connection field that it needs")
func connectionField() {
    func line(_ keepsAlive: Bool, _ version: HTTPVersion) -> String {
        written { ResponseWriter.connection(keepsAlive: keepsAlive, to: version, in: &$0) }
    }
    #expect(line(true, .http11) == "")
    #expect(line(false, .http11) == "Connection: close\r\n")
    #expect(line(true, .http10) == "Connection: keep-alive\r\n")
    #expect(line(false, .http10) == "Connection: close\r\n")
}

@Test("a body written in chunks is decoded to the original", arguments: [0, 1, 15, 16, 255, 4_096, 100_000])
func chunksRoundTrip(_ size: Int) {
    let data = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
    var queue = ByteQueue()
    ResponseWriter.chunk(data.span, to: &queue)
    ResponseWriter.chunk(Span(), to: &queue)
    ResponseWriter.chunkHead(0, to: &queue)
    ResponseWriter.chunkHead(-1, to: &queue)
    ResponseWriter.chunk(latin1("end").span, to: &queue)
    #expect(queue.count <= size + 3 + 2 * ResponseWriter.chunkOverhead)
    var withTrailers = ByteQueue()
    queue.withSpan { withTrailers.append($0) }
    ResponseWriter.endOfChunks(to: &queue)
    let body = DecodedBody(queue.withSpan { $0.copy(ByteRange(start: 0, end: $0.count)) })
    #expect(body.data == data + latin1("end"))
    #expect(body.length == queue.count)

    ResponseWriter.lastChunk(to: &withTrailers)
    ResponseWriter.field("Server-Timing", "a", to: &withTrailers)
    ResponseWriter.endOfHead(to: &withTrailers)
    let second = DecodedBody(withTrailers.withSpan { $0.copy(ByteRange(start: 0, end: $0.count)) })
    #expect(second.data == body.data)
    #expect(second.trailers == ["Server-Timing=a"])
}

@Test(
    "a date is written in the one form that is written",
    arguments: [
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_709_251_199, "Thu, 29 Feb 2024 23:59:59 GMT"),
        (1_735_689_599, "Tue, 31 Dec 2024 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (Int64.min, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ])
func dates(_ seconds: Int64, _ expected: String) {
    #expect(written { HTTPDate.append(secondsSince1970: seconds, to: &$0) } == expected)
}
