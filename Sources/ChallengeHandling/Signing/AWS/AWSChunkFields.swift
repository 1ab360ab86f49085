// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Fields of a request with an `aws-chunked` body.
package enum AWSChunkFields {
    private static let length = Array("x-amz-decoded-content-length".utf8)
    private static let removed = [
        length, Array("x-amz-content-sha256".utf8), Array("x-amz-trailer".utf8),
        Array("x-amz-sdk-checksum-algorithm".utf8),
    ]
    private static let checksum = Array("x-amz-checksum-".utf8)
    private static let coding = Array("aws-chunked".utf8)

    /// Returns the length of the data in the field `name`; nil for another field, and for a value that is not a number.
    package static func length(_ name: Span<UInt8>, _ value: Span<UInt8>) -> UInt64? {
        guard name.isEqual(toLowercase: length), (1...18).contains(value.count) else { return nil }
        var number: UInt64 = 0
        for index in value.indices {
            guard value[index].isDigit else { return nil }
            number = number * 10 + UInt64(value[index] &- 0x30)
        }
        return number
    }

    /// Returns true if the field describes the chunks, and so means nothing for the data itself.
    package static func isRemoved(_ name: Span<UInt8>) -> Bool {
        removed.contains { name.isEqual(toLowercase: $0) }
    }

    /// Returns true if a trailer of that name may be a field of the request.
    package static func isChecksum(_ name: [UInt8]) -> Bool { name.starts(with: checksum) }

    /// Returns the value of `Content-Encoding` without the coding of chunks; empty if nothing else remains.
    package static func withoutChunks(_ value: [UInt8]) -> [UInt8] {
        var kept: [UInt8] = []
        for part in value.split(separator: UInt8(ascii: ",")) {
            let name = Array(part.trimmed(\.isBlank))
            if name.isEmpty || name.map(\.lowercased) == coding { continue }
            kept += kept.isEmpty ? name : Array(", ".utf8) + name
        }
        return kept
    }
}
