// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Testing

@testable import ChallengeClient

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
        // A block of fixed codes (RFC 1951 §3.2.6): one blank, and then 258 times the one before, again and again.
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

    /// A Huffman code, which goes with its highest bit first.
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
