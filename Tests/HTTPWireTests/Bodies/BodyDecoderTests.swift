// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Test("a body without content ends before its first byte")
func noBody() {
    var decoder = BodyDecoder(framing: .none)
    let bytes = latin1("GET /")
    #expect(decoder.decode(bytes.span) == .end(consumed: 0))
    #expect(decoder.decode(bytes.span) == .end(consumed: 0))
    var empty = BodyDecoder(framing: .length(0))
    #expect(empty.decode(bytes.span) == .end(consumed: 0))
}

@Test("a body with a length ends after that length, however it is cut into pieces")
func lengthBody() {
    let bytes = latin1("hello world")
    for cut in 0...bytes.count {
        let body = DecodedBody(bytes, framing: .length(5), arrivals: [cut])
        #expect(body.data == latin1("hello"))
        #expect(body.length == 5)
    }
    #expect(DecodedBody(bytes, framing: .length(12)).length == nil)
    #expect(DecodedBody(bytes, framing: .length(12)).data == bytes)
}

@Test("the remaining length of a body is known, except in chunks")
func remainingLength() {
    var decoder = BodyDecoder(framing: .length(UInt64(Int64.max)))
    let bytes = latin1("hello")
    #expect(decoder.decode(bytes.span) == .data(ByteRange(start: 0, end: 5), consumed: 5))
    #expect(decoder.remaining == UInt64(Int64.max) - 5)
    #expect(decoder.decode(Span()) == .needMore(consumed: 0))
    #expect(BodyDecoder(framing: .chunked).remaining == nil)
}

@Test("a refused body is refused again at every further step")
func refusedStays() {
    var decoder = BodyDecoder(framing: .chunked)
    let bad = latin1("x\r\n")
    #expect(decoder.decode(bad.span) == .refused(WireError(.chunkSizeInvalid)))
    let good = latin1("0\r\n\r\n")
    #expect(decoder.decode(good.span) == .refused(WireError(.chunkSizeInvalid)))
}

@Test("a body that has ended consumes nothing more")
func endedStays() {
    var decoder = BodyDecoder(framing: .chunked)
    let bytes = latin1("0\r\nA: b\r\n\r\n")
    #expect(decoder.decode(bytes.span) == .end(consumed: bytes.count))
    #expect(decoder.trailers.count == 1)
    #expect(decoder.decode(bytes.span) == .end(consumed: 0))
}

@Test("trailers that would change what was decided are dropped")
func forbiddenTrailers() {
    let dropped = [
        "Content-Length", "Transfer-Encoding", "Host", "Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie",
        "Connection", "TE", "Trailer", "Upgrade", "Expect", "Cache-Control", "Max-Forwards", "Content-Type",
        "Content-Encoding", "Content-Range", "Range", "Forwarded", "X-Forwarded-For", "Via", "Origin",
        "Sec-Fetch-Site", "WWW-Authenticate", "Location",
        // As CGI programs take them.
        "Content_Length", "transfer_ENCODING", "X_Forwarded-For", "Proxy_Authorization",
    ]
    for name in dropped {
        let body = DecodedBody(latin1("0\r\nA: 1\r\n\(name): x\r\nB: 2\r\n\r\n"))
        #expect(body.trailers == ["A=1", "B=2"], "\(name)")
    }
    #expect(DecodedBody(latin1("0\r\nServer-Timing: a\r\nETag: b\r\n\r\n")).trailers.count == 2)
}

@Test("chunk extensions are limited over the whole body, not per chunk")
func extensionsAddUp() {
    let chunk = "1;" + String(repeating: "a", count: 100) + "\r\nx\r\n"
    let few = latin1(String(repeating: chunk, count: 100) + "0\r\n\r\n")
    #expect(DecodedBody(few).data.count == 100)
    #expect(DecodedBody(few).length == few.count)
    let many = latin1(String(repeating: chunk, count: 1_000))
    #expect(DecodedBody(many).refusal == .chunkExtensionsTooLong)
    let plain = latin1(String(repeating: "1\r\nx\r\n", count: 100_000) + "0\r\n\r\n")
    #expect(DecodedBody(plain).data.count == 100_000)
}
