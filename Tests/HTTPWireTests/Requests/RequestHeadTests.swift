// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import TestSupport
import Testing

@Test("a request head is parsed, and the next request is not consumed")
func typicalRequest() {
    let bytes = latin1("GET /a/b?c=d HTTP/1.1\r\nHost: localhost:8080\r\nX-A:  v \r\nConnection: x-a\r\n\r\nGET /")
    var parser = RequestHeadParser()
    #expect(parser.parse(bytes.span) == .complete(length: bytes.count - 5))
    #expect(parser.head.method == .get)
    #expect(text(parser.head.methodRange, in: bytes) == "GET")
    #expect(parser.head.version == .http11)
    #expect(text(parser.head.target.pathAndQuery, in: bytes) == "/a/b?c=d")
    #expect(text(parser.head.target.path, in: bytes) == "/a/b")
    #expect(text(parser.head.authority, in: bytes) == "localhost:8080")
    #expect(parser.head.fields.map { text($0.name, in: bytes) } == ["Host", "X-A", "Connection"])
    #expect(parser.head.fields.map { text($0.value, in: bytes) } == ["localhost:8080", "v", "x-a"])
    #expect(parser.head.fields.map(\.kind) == [.host, .other, .connection])
    #expect(parser.head.body == .none)
}

@Test("each request head is accepted, or refused by the rule that it breaks", arguments: HeadCases.all)
func everyCase(_ example: HeadCase) {
    #expect(parse(example.bytes) == example.outcome)
}

@Test("a request head that arrives byte by byte is parsed like one that arrives at once", arguments: HeadCases.all)
func byteByByte(_ example: HeadCase) {
    let slow = parseByteByByte(example.bytes)
    #expect(slow.outcome == example.outcome)
    guard example.refusal == nil else { return }
    let fast = head(example.raw)
    #expect(slow.used == example.bytes.count)
    #expect(slow.head.fields == fast.fields)
    #expect(slow.head.target == fast.target)
    #expect(slow.head.body == fast.body)
    #expect(slow.head.keepsAlive == fast.keepsAlive)
}

@Test("bytes after a request head do not change the result", arguments: HeadCases.taken)
func pipelined(_ example: HeadCase) {
    for tail in ["\r\n", "\n", "GET / HTTP/1.1\r\n", "\u{0}", String(repeating: "x", count: 100_000)] {
        #expect(parse(example.bytes + latin1(tail)) == example.outcome)
    }
}

@Test("every prefix of a valid request head is incomplete", arguments: HeadCases.taken)
func prefixes(_ example: HeadCase) {
    let bytes = example.bytes
    for count in 0..<bytes.count {
        #expect(parse(Array(bytes.prefix(count))) == .incomplete)
    }
}

@Test("a RequestHeadParser is like new after a reset")
func resetForgets() {
    var parser = RequestHeadParser()
    let first = latin1("POST * HTTP/1.1\r\n\r\n")
    #expect(parser.parse(first.span) == .refused(WireError(.targetFormMismatch)))
    #expect(parser.parse(first.span) == .refused(WireError(.targetFormMismatch)))
    parser.reset()
    #expect(parser.isIdle)
    let second = latin1(
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nConnection: close, accept\r\nTE: trailers\r\n\r\n")
    #expect(parser.parse(second.span) == .complete(length: second.count))
    #expect(parser.parse(second.span) == .complete(length: second.count))
    #expect(!parser.isIdle)
    parser.reset()
    let third = latin1("GET / HTTP/1.0\r\nAccept: b\r\n\r\n")
    #expect(parser.parse(third.span) == .complete(length: third.count))
    #expect(parser.head.host == nil)
    #expect(parser.head.body == .none)
    #expect(!parser.head.acceptsTrailers)
    #expect(!parser.head.keepsAlive)
    #expect(parser.head.fields.count == 1)
    #expect(parser.head.fields.allSatisfy { !$0.isNominated })
}

@Test("methods are compared with case, and have their RFC 9110 properties")
func methods() {
    let known: [(String, RequestMethod, safe: Bool, idempotent: Bool)] = [
        ("GET", .get, true, true), ("HEAD", .head, true, true), ("POST", .post, false, false),
        ("PUT", .put, false, true), ("DELETE", .delete, false, true), ("OPTIONS", .options, true, true),
        ("PATCH", .patch, false, false), ("TRACE", .trace, true, true), ("get", .other, false, false),
        ("GOT", .other, false, false), ("Put", .other, false, false), ("MERGE", .other, false, false),
        ("CANCEL", .other, false, false), ("OPTIONZ", .other, false, false), ("LINK", .other, false, false),
    ]
    for (name, method, safe, idempotent) in known {
        let head = head("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(head.method == method, "\(name)")
        #expect(head.method.isSafe == safe, "\(name)")
        #expect(head.method.isIdempotent == idempotent, "\(name)")
    }
    #expect(head("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n").method == .connect)
    #expect(!RequestMethod.connect.isIdempotent)
}

private func request(lineLength: Int) -> [UInt8] {
    latin1("GET /" + String(repeating: "a", count: lineLength - 14) + " HTTP/1.1\r\nHost: a\r\n\r\n")
}

private func request(headLength: Int) -> [UInt8] {
    let around = "GET / HTTP/1.1\r\nHost: a\r\nA: \r\n\r\n".unicodeScalars.count
    return latin1(
        "GET / HTTP/1.1\r\nHost: a\r\nA: " + String(repeating: "a", count: headLength - around) + "\r\n\r\n")
}

private func request(fields: Int) -> [UInt8] {
    latin1("GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "A: b\r\n", count: fields - 1) + "\r\n")
}

@Test("a request line of exactly the limit is accepted, and one byte more is 414")
func lineLimit() {
    let limits = HeadLimits(line: 100)
    let fits = request(lineLength: 100)
    #expect(parse(fits, limits: limits) == .complete(length: fits.count))
    #expect(parse(request(lineLength: 101), limits: limits) == .refused(WireError(.requestLineTooLong)))
    #expect(
        parseByteByByte(request(lineLength: 101), limits: limits).outcome == .refused(WireError(.requestLineTooLong)))
    #expect(parseByteByByte(request(lineLength: 5000), limits: limits).used == 102)
    #expect(WireError(.requestLineTooLong).status == 414)
}

@Test("a request head of exactly the limit is accepted, and one byte more is 431")
func headLimit() {
    let limits = HeadLimits(head: 1000)
    let fits = request(headLength: 1000)
    #expect(fits.count == 1000)
    #expect(parse(fits, limits: limits) == .complete(length: 1000))
    #expect(parse(latin1("\r\n\r\n") + fits, limits: limits) == .complete(length: 1004))
    #expect(parseByteByByte(fits, limits: limits).outcome == .complete(length: 1000))
    #expect(parse(request(headLength: 1001), limits: limits) == .refused(WireError(.headTooLarge)))
    let slow = parseByteByByte(request(headLength: 9000), limits: limits)
    #expect(slow.outcome == .refused(WireError(.headTooLarge)))
    #expect(slow.used == 1001)
}

@Test("a request with as many fields as the limit is accepted, and one more is 431")
func fieldLimit() {
    let limits = HeadLimits(fieldCount: 10)
    let fits = request(fields: 10)
    #expect(parse(fits, limits: limits) == .complete(length: fits.count))
    #expect(parse(request(fields: 11), limits: limits) == .refused(WireError(.fieldsTooMany)))
    let defaults = request(fields: 100)
    #expect(parse(defaults) == .complete(length: defaults.count))
    #expect(parse(request(fields: 101)) == .refused(WireError(.fieldsTooMany)))
}

@Test("head limits are clamped to values that the parser can count")
func limitsAreClamped() {
    let none = HeadLimits(line: -1, head: .min, fieldCount: 0)
    #expect(none.line > 0 && none.head > 0 && none.fieldCount > 0)
    let all = HeadLimits(line: .max, head: .max, fieldCount: .max)
    #expect(all.line <= all.head && all.head <= 16_777_216 && all.fieldCount <= 65_536)
    #expect(HeadLimits() == HeadLimits(line: 8_192, head: 65_536, fieldCount: 100))
}

@Test("parsing the longest head byte by byte takes time proportional to its length")
func linearTime() {
    // One long line, and many short ones: slow for a parser that starts again at the line or the head.
    let limits = HeadLimits(line: 1_000_000, head: 4_000_000, fieldCount: 65_536)
    let shapes: [(Int) -> [UInt8]] = [
        { request(lineLength: $0) }, { request(headLength: $0) }, { request(fields: $0 / 6) },
    ]
    for shape in shapes {
        let small = shape(40_000)
        let large = shape(320_000)
        func fastest(_ bytes: [UInt8]) -> Int {
            (0..<3).map { _ in
                let start = threadTime()
                #expect(parseByteByByte(bytes, limits: limits).outcome == .complete(length: bytes.count))
                return threadTime() - start
            }.min() ?? 0
        }
        // Eight times the bytes; quadratic time would be sixty-four times as long.
        #expect(fastest(large) < fastest(small) * 32)
    }
}
