// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

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
