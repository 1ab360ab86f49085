// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
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
