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
        // CGI programs read `_` as `-`.
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

/// A chunked body and what it holds, or the rule that it breaks.
struct ChunkedCase: Sendable, CustomTestStringConvertible {
    let raw: String
    var data = ""
    var trailers: [String] = []
    var refusal: WireErrorCode?

    var testDescription: String { String(reflecting: raw.prefix(80)) }

    static let taken: [ChunkedCase] = [
        ChunkedCase(raw: "0\r\n\r\n"),
        ChunkedCase(raw: "000\r\n\r\n"),
        ChunkedCase(raw: "5\r\nhello\r\n0\r\n\r\n", data: "hello"),
        ChunkedCase(raw: "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", data: "hello world"),
        ChunkedCase(raw: "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", data: "01234567890123456789"),
        ChunkedCase(raw: "0000000000000001\r\nx\r\n0\r\n\r\n", data: "x"),
        ChunkedCase(raw: "4\r\n\r\n\r\n\r\n0\r\n\r\n", data: "\r\n\r\n"),
        ChunkedCase(raw: "1;a\r\nx\r\n0;b\r\n\r\n", data: "x"),
        ChunkedCase(raw: "1;a=b;c=\"d\\\"; \\\\e\u{FF}\";f\r\nx\r\n0\r\n\r\n", data: "x"),
        ChunkedCase(raw: "1 \t; a \t= \tb ; c\r\nx\r\n0\r\n\r\n", data: "x"),
        ChunkedCase(raw: "1;a=\"\"\r\nx\r\n0\r\n\r\n", data: "x"),
        ChunkedCase(raw: "1\r\nx\r\n0\r\nA: b\r\nC:d \r\n\r\n", data: "x", trailers: ["A=b", "C=d"]),
        ChunkedCase(raw: "0;x\r\nA:\r\n\r\n", trailers: ["A="]),
    ]

    static let refused: [ChunkedCase] = [
        ChunkedCase(raw: "\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: " 5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "\t5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "+5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "-5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "0x5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "g\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: ";a\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "5,5\r\nhello\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "1_0\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "5.\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "5\u{0}\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "\u{FF}5\r\n", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "8000000000000000\r\n", refusal: .chunkSizeTooLarge),
        ChunkedCase(raw: "FFFFFFFFFFFFFFFF\r\n", refusal: .chunkSizeTooLarge),
        ChunkedCase(raw: "10000000000000005\r\nhello\r\n", refusal: .chunkSizeTooLarge),
        ChunkedCase(raw: "00000000000000005\r\nhello\r\n", refusal: .chunkSizeTooLarge),
        ChunkedCase(raw: "5\nhello\r\n0\r\n\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\rhello\r\n0\r\n\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\r\nhello\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhello0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhelloX\r\n0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhello\n0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhello\n\n0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhelloX\n0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhello\r0\r\n\r\n", data: "hello", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5\r\nhello\r\n\r\n0\r\n\r\n", data: "hello", refusal: .chunkSizeInvalid),
        ChunkedCase(raw: "5 \r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5 5\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;;a\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;=a\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=b=c\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a b\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a \r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=b \r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=\"b\"c\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=\"b\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a=\"\\\u{0}\"\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;\u{FF}\r\nhello\r\n", refusal: .chunkExtensionInvalid),
        ChunkedCase(raw: "5;a\nhello\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5;a=\"\n\"\r\nhello\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(raw: "5;a\rX\r\nhello\r\n", refusal: .chunkTerminatorInvalid),
        ChunkedCase(
            raw: "5;" + String(repeating: "a", count: 20_000) + "\r\nhello\r\n", refusal: .chunkExtensionsTooLong),
        ChunkedCase(raw: "0\r\n\n", refusal: .bareLineFeed),
        ChunkedCase(raw: "0\r\nA: b\n\r\n", refusal: .bareLineFeed),
        ChunkedCase(raw: "0\r\nA: b\r\n\n", refusal: .bareLineFeed),
        ChunkedCase(raw: "0\r\nA\r\n\r\n", refusal: .fieldColonMissing),
        ChunkedCase(raw: "0\r\nA : b\r\n\r\n", refusal: .fieldSpaceBeforeColon),
        ChunkedCase(raw: "0\r\nA: b\r\n c\r\n\r\n", refusal: .fieldsFolded),
        ChunkedCase(raw: "0\r\n A: b\r\n\r\n", refusal: .fieldsFolded),
        ChunkedCase(raw: "0\r\nA: b\u{0}\r\n\r\n", refusal: .fieldValueInvalid),
        ChunkedCase(raw: "0\r\nA: b\rc\r\n\r\n", refusal: .fieldValueInvalid),
        ChunkedCase(raw: "0\r\n: b\r\n\r\n", refusal: .fieldNameInvalid),
        ChunkedCase(raw: "0\r\n" + String(repeating: "A: b\r\n", count: 33) + "\r\n", refusal: .fieldsTooMany),
        ChunkedCase(raw: "0\r\nA: " + String(repeating: "b", count: 9_000) + "\r\n\r\n", refusal: .trailersTooLarge),
        ChunkedCase(raw: "0\r\nA: " + String(repeating: "b", count: 9_000), refusal: .trailersTooLarge),
    ]
}

@Test("a chunked body is decoded completely, and the bytes after it are not consumed", arguments: ChunkedCase.taken)
func takenChunks(_ example: ChunkedCase) {
    let bytes = latin1(example.raw)
    for tail in ["", "\r\n", "5\r\nhello\r\n", "GET / HTTP/1.1\r\n"] {
        let body = DecodedBody(bytes + latin1(tail))
        #expect(body.length == bytes.count)
        #expect(body.data == latin1(example.data))
        #expect(body.trailers == example.trailers)
    }
}

@Test("a chunked body that can be read in two ways is refused", arguments: ChunkedCase.refused)
func refusedChunks(_ example: ChunkedCase) {
    let body = DecodedBody(latin1(example.raw))
    #expect(body.refusal == example.refusal)
    #expect(body.data == latin1(example.data))
}

@Test(
    "a chunked body is decoded the same wherever its bytes are cut",
    arguments: (ChunkedCase.taken + ChunkedCase.refused).filter { $0.raw.utf8.count < 200 })
func cutChunks(_ example: ChunkedCase) {
    let bytes = latin1(example.raw)
    let whole = DecodedBody(bytes)
    for cut in 0...bytes.count {
        #expect(DecodedBody(bytes, arrivals: [cut]) == whole)
        for second in cut...min(cut + 4, bytes.count) {
            #expect(DecodedBody(bytes, arrivals: [cut, second]) == whole)
        }
    }
    #expect(DecodedBody(bytes, arrivals: Array(0...bytes.count)) == whole)
}

@Test("no prefix of a chunked body counts as complete", arguments: ChunkedCase.taken)
func partialChunks(_ example: ChunkedCase) {
    let bytes = latin1(example.raw)
    for count in 0..<bytes.count {
        let body = DecodedBody(Array(bytes.prefix(count)))
        #expect(body.length == nil)
        #expect(body.refusal == nil)
    }
}

/// Result of decoding a body that arrives in pieces.
struct DecodedBody: Equatable {
    var data: [UInt8] = []
    var trailers: [String] = []
    /// Number of bytes that belong to the body, if it ended.
    var length: Int?
    var refusal: WireErrorCode?

    /// Decodes `bytes` as they arrive: up to each offset of `arrivals`, and then all.
    init(_ bytes: [UInt8], framing: BodyFraming = .chunked, arrivals: [Int] = []) {
        var decoder = BodyDecoder(framing: framing)
        var consumed = 0
        for end in arrivals + [bytes.count] {
            while true {
                let window = bytes.span.extracting(consumed..<max(end, consumed))
                switch decoder.decode(window) {
                case .data(let range, let count):
                    data += window.copy(range)
                    consumed += count
                    continue
                case .needMore(let count):
                    consumed += count
                case .end(let count):
                    trailers = decoder.trailers.map { line in
                        bytes.span.text(line.name, from: consumed) + "=" + bytes.span.text(line.value, from: consumed)
                    }
                    length = consumed + count
                    return
                case .refused(let error):
                    refusal = error.code
                    return
                }
                break
            }
        }
    }
}

extension Span<UInt8> {
    fileprivate func text(_ range: ByteRange, from origin: Int) -> String {
        text(ByteRange(start: range.start + origin, end: range.end + origin))
    }
}
