// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeHandling

@Suite("Bodies that a client of an object store has framed in chunks")
struct AWSChunkDecoderTests {
    /// Returns the data of `text`, which comes in pieces of `size` bytes, and the names of the trailers.
    private func decoded(
        _ text: String, length: UInt64, by size: Int = 1_000
    ) throws(AWSChunkDecoder.Fault) -> (data: String, trailers: [String]) {
        var decoder = AWSChunkDecoder(length: length)
        var data: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            try decoder.decode(piece.span) { bytes in
                for index in bytes.indices { data.append(bytes[index]) }
            }
        }
        try decoder.finish()
        let trailers = decoder.trailers.map { String(decoding: $0.name + [58] + $0.value, as: UTF8.self) }
        return (String(decoding: data, as: UTF8.self), trailers)
    }

    private static let signature = "chunk-signature=" + String(repeating: "0123456789abcdef", count: 4)

    @Test(
        "signed and unsigned chunks, with and without trailers, are decoded in pieces of any size",
        arguments: [1, 2, 7, 1_000])
    func forms(size: Int) throws {
        let signed = "5;\(Self.signature)\r\nhello\r\nA;\(Self.signature)\r\n0123456789\r\n0;\(Self.signature)\r\n"
        for end in ["", "\r\n", "x-amz-checksum-crc32:AAAAAA==\r\nx-amz-trailer-signature:0a\r\n\r\n"] {
            let got = try decoded(signed + end, length: 15, by: size)
            #expect(got.data == "hello0123456789")
            #expect(got.trailers.first == (end.count < 3 ? nil : "x-amz-checksum-crc32:AAAAAA=="))
        }
        let unsigned = try decoded("5\r\nhello\r\n0\r\nX-Amz-Checksum-CRC32: AA==\r\n\r\n", length: 5, by: size)
        #expect(unsigned.data == "hello" && unsigned.trailers == ["x-amz-checksum-crc32:AA=="])
        #expect(try decoded("0;\(Self.signature)\r\n\r\n", length: 0, by: size).data == "")
    }

    @Test(
        "other framing is refused",
        arguments: [
            "hello", "5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "\r\n", "-5\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\r\n",
            "0x5\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\r\n\r\nmore", "5\r\nhello\r\n0\r\nno colon\r\n\r\n",
            "5\r\nhello\r\n0\r\na b:c\r\n\r\n", "5\r\nhello\r\n0\r\na:\u{1}\r\n\r\n", "5",
            "00000000000000005\r\nhello\r\n0\r\n\r\n",
        ])
    func malformed(_ text: String) {
        #expect(throws: AWSChunkDecoder.Fault.self) { try decoded(text, length: 5) }
    }

    @Test("a length other than the announced one is refused", arguments: [0, 4, 6, UInt64.max])
    func lengths(length: UInt64) {
        #expect(throws: AWSChunkDecoder.Fault.length) { try decoded("5\r\nhello\r\n0\r\n\r\n", length: length) }
        #expect(throws: AWSChunkDecoder.Fault.length) {
            try decoded("ffffffffffffffff\r\nhello\r\n0\r\n\r\n", length: 5)
        }
    }

    @Test("fields about chunks are known, whatever their case")
    func fields() {
        let name = Array("X-Amz-Decoded-Content-Length".utf8)
        #expect(AWSChunkFields.length(name.span, Array("17".utf8).span) == 17)
        for value in ["", "x", "-1", "1 ", String(repeating: "9", count: 19)] {
            #expect(AWSChunkFields.length(name.span, Array(value.utf8).span) == nil)
        }
        for name in ["x-amz-content-sha256", "X-Amz-Trailer", "x-amz-sdk-checksum-algorithm"] {
            let isRemoved = AWSChunkFields.isRemoved(Array(name.utf8).span)
            #expect(isRemoved)
        }
        let isKept = !AWSChunkFields.isRemoved(Array("x-amz-acl".utf8).span)
        #expect(isKept)
        func codings(_ text: String) -> String {
            String(decoding: AWSChunkFields.withoutChunks(Array(text.utf8)), as: UTF8.self)
        }
        #expect(
            codings("aws-chunked") == "" && codings("AWS-Chunked , gzip") == "gzip" && codings("gzip,br") == "gzip, br")
    }
}
