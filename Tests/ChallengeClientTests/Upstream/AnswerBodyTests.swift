// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@testable import ChallengeClient

@Suite("The end of an answer's body")
struct AnswerBodyTests {
    /// Result of a body that arrives in pieces.
    private struct Result: Equatable {
        var data = ""
        var trailers = ""
        var isWhole = false
        var end = End.open

        enum End: Equatable {
            case open, beyond
            case broken(WireErrorCode)
        }
    }

    private func read(_ head: String, _ pieces: [String], isBodyless: Bool = false) throws -> Result {
        var scanner = ResponseHeadScanner()
        try scanner.scan(Array((head + "\r\n\r\n").utf8).span)
        var body = AnswerBody()
        body.begin(behind: scanner.head, isBodyless: isBodyless)
        var data = ByteQueue()
        var result = Result()
        for piece in pieces {
            switch body.take(Array(piece.utf8).span, into: &data) {
            case .taken: continue
            case .beyondEnd: result.end = .beyond
            case .broken(let code): result.end = .broken(code)
            }
            break
        }
        result.data = data.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        result.trailers = body.trailers.lines.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        result.isWhole = body.isWhole
        return result
    }

    private let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"

    @Test("a body with a length is counted, and a byte more belongs to no answer")
    func length() throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 5"
        #expect(try read(head, []) == Result())
        #expect(try read(head, ["hel"]) == Result(data: "hel"))
        #expect(try read(head, ["hel", "lo"]) == Result(data: "hello", isWhole: true))
        #expect(try read(head, ["hel", "lo!"]) == Result(data: "hello", isWhole: true, end: .beyond))
        #expect(try read("HTTP/1.1 200 OK\r\nContent-Length: 0", []).isWhole)
    }

    @Test("a body that ends with the connection is never complete by itself")
    func untilEnd() throws {
        #expect(try read("HTTP/1.1 200 OK", ["a", "b"]) == Result(data: "ab"))
    }

    @Test(
        "HEAD, 204 and 304 have no body, whatever their fields say",
        arguments: ["", "\r\nContent-Length: 5", "\r\nTransfer-Encoding: chunked"])
    func bodyless(fields: String) throws {
        #expect(try read("HTTP/1.1 200 OK" + fields, [], isBodyless: true) == Result(isWhole: true))
        for status in ["204 No Content", "304 Not Modified"] {
            #expect(try read("HTTP/1.1 \(status)" + fields, []).isWhole)
            #expect(try read("HTTP/1.1 \(status)" + fields, ["hello"]) == Result(isWhole: true, end: .beyond))
        }
    }

    @Test("chunks and trailers are decoded wherever they are cut")
    func chunks() throws {
        let bytes = "5;a=b\r\nhello\r\n6\r\n world\r\n000\r\nX-Sum: 1\r\nExpires: 0\r\n\r\n"
        let whole = Result(data: "hello world", trailers: "X-Sum: 1\r\nExpires: 0\r\n", isWhole: true)
        #expect(try read(chunked, [bytes]) == whole)
        #expect(try read(chunked, bytes.utf8.map { String(UnicodeScalar($0)) }) == whole)
        for cut in 1..<bytes.utf8.count {
            let (begin, rest) = (String(bytes.utf8.prefix(cut)) ?? "", String(bytes.utf8.dropFirst(cut)) ?? "")
            #expect(try read(chunked, [begin, rest]) == whole)
            #expect(try !read(chunked, [begin]).isWhole)
        }
        #expect(try read(chunked, [bytes + "H"]).end == .beyond)
        #expect(try read(chunked, [bytes, "H"]).end == .beyond)
    }

    @Test("trailers that would change what was decided by the head are dropped")
    func forbiddenTrailers() throws {
        let trailers =
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\nSet-Cookie: a\r\nWWW-Authenticate: Basic\r\nX-Sum:\r\n"
        #expect(try read(chunked, ["0\r\n\(trailers)\r\n"]) == Result(trailers: "X-Sum: \r\n", isWhole: true))
    }

    @Test("chunks and trailers that break the grammar break the answer, which is then not whole")
    func broken() throws {
        for (bytes, code): (String, WireErrorCode) in [
            ("x\r\n", .chunkSizeInvalid), ("5\nhello\n0\n\n", .chunkTerminatorInvalid), ("\r\n", .chunkSizeInvalid),
            ("5\r\nhelloX", .chunkTerminatorInvalid), ("5\r\nhello\n0\r\n\r\n", .chunkTerminatorInvalid),
            ("-5\r\n", .chunkSizeInvalid), ("0x5\r\n", .chunkSizeInvalid), ("5 5\r\n", .chunkExtensionInvalid),
            ("FFFFFFFFFFFFFFFFF\r\n", .chunkSizeTooLarge), ("5;\u{1}\r\n", .chunkExtensionInvalid),
            ("0\r\nX\r\n\r\n", .fieldColonMissing), ("0\r\nX : 1\r\n\r\n", .fieldSpaceBeforeColon),
            ("0\r\nX: 1\n\r\n", .bareLineFeed), ("0\r\nX: \u{0}\r\n\r\n", .fieldValueInvalid),
            ("0\r\n\n", .bareLineFeed),
            ("0\r\n X: 1\r\n\r\n", .fieldsFolded),
            ("0\r\n" + String(repeating: "X: 1\r\n", count: 33) + "\r\n", .fieldsTooMany),
            ("0\r\nX: " + String(repeating: "1", count: 9_000) + "\r\n\r\n", .trailersTooLarge),
        ] {
            let result = try read(chunked, [bytes])
            #expect(result.end == .broken(code), "\(bytes)")
            #expect(!result.isWhole)
        }
    }

    @Test("an answer's body has no bytes of the previous one")
    func again() throws {
        var body = AnswerBody()
        var data = ByteQueue()
        var scanner = ResponseHeadScanner()
        try scanner.scan(Array("\(chunked)\r\n\r\n".utf8).span)
        body.begin(behind: scanner.head, isBodyless: false)
        _ = body.take(Array("5\r\nhello\r\n0\r\nX: ".utf8).span, into: &data)
        body.begin(behind: scanner.head, isBodyless: false)
        _ = body.take(Array("0\r\nY: 1\r\n\r\n".utf8).span, into: &data)
        let trailers = body.trailers.lines.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
        #expect(trailers == "Y: 1\r\n")
        let isWhole = body.isWhole
        #expect(isWhole)
    }
}

@Suite("Content codings, decoded to examine a page")
struct ContentCodingTests {
    private static let page = Array(("<html>LOGIN page " + String(repeating: "x", count: 200)).utf8)
    // Made by Python's gzip and zlib.
    private static let gzip: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 179, 201, 40, 201, 205, 177, 243, 241, 119, 247, 244, 83, 40, 72, 76, 79, 85,
        168, 24, 38, 0, 0, 50, 74, 89, 108, 217, 0, 0, 0,
    ]
    private static let wrapped: [UInt8] = [
        120, 156, 179, 201, 40, 201, 205, 177, 243, 241, 119, 247, 244, 83, 40, 72, 76, 79, 85, 168, 24, 38, 0, 0, 84,
        128, 99, 70,
    ]
    private static let bare: [UInt8] = [
        179, 201, 40, 201, 205, 177, 243, 241, 119, 247, 244, 83, 40, 72, 76, 79, 85, 168, 24, 38, 0, 0,
    ]

    @Test("gzip, and deflate with and without its wrapper, are decoded")
    func known() {
        #expect(ContentCoding.undone(Self.gzip, ["gzip"], limit: 65_536) == Self.page)
        #expect(ContentCoding.undone(Self.gzip, ["X-GZIP"], limit: 65_536) == Self.page)
        #expect(ContentCoding.undone(Self.wrapped, ["deflate"], limit: 65_536) == Self.page)
        #expect(ContentCoding.undone(Self.bare, ["deflate"], limit: 65_536) == Self.page)
        #expect(ContentCoding.undone(Self.page, [], limit: 65_536) == Self.page)
        #expect(ContentCoding.undone(Self.page, ["identity"], limit: 65_536) == Self.page)
    }

    @Test("a truncated gzip body is decoded as far as it goes")
    func beginning() {
        let half = ContentCoding.undone(Array(Self.gzip.dropLast(8)), ["gzip"], limit: 65_536)
        #expect(Self.page.starts(with: half))
        #expect(ContentCoding.undone(Self.gzip, ["gzip"], limit: 17) == Array(Self.page.prefix(17)))
    }

    @Test("a decoded page is cut at the limit, however long it is")
    func bomb() {
        // A block of fixed codes (RFC 1951 §3.2.6): one space, then matches of 258 bytes at distance 1.
        var bits: [Bool] = [true, true, false] + code(0x30 + 0x20, 8)
        for _ in 0..<100_000 { bits += code(0b1100_0101, 8) + code(0, 5) }
        let bytes = stride(from: 0, to: bits.count, by: 8).map { start in
            bits[start..<min(start + 8, bits.count)].enumerated().reduce(UInt8(0)) {
                $1.element ? $0 | 1 << $1.offset : $0
            }
        }
        #expect(bytes.count < 165_000)
        let undone = ContentCoding.undone(bytes, ["deflate"], limit: 1 << 20)
        #expect(undone.count == 1 << 20 && undone.allSatisfy { $0 == 0x20 })
    }

    /// Returns the bits of a Huffman code, highest bit first.
    private func code(_ value: Int, _ length: Int) -> [Bool] {
        (0..<length).reversed().map { value >> $0 & 1 == 1 }
    }

    @Test("an unknown, combined or broken content coding gives no page")
    func unknown() {
        #expect(ContentCoding.undone(Self.page, ["br"], limit: 65_536).isEmpty)
        #expect(ContentCoding.undone(Self.gzip, ["gzip, gzip"], limit: 65_536).isEmpty)
        #expect(ContentCoding.undone(Self.page, ["gzip"], limit: 65_536).isEmpty)
        #expect(ContentCoding.undone([], ["gzip"], limit: 65_536).isEmpty)
    }
}
