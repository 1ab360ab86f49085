// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Decoder of an `aws-chunked` body, whose chunks a client may have signed (`chunk-signature`).
///
/// Source: "Signature calculations for the Authorization header: transferring payload in multiple chunks", Amazon S3 API
/// Reference. The client's signatures are of no use upstream, where another key signs.
package struct AWSChunkDecoder: Sendable {
    /// A fault of the body.
    package enum Fault: Error, Equatable {
        /// The framing is not that of chunks.
        case framing
        /// The data is longer or shorter than `x-amz-decoded-content-length`.
        case length
    }

    private enum State: Equatable {
        /// A size and its extensions; the line's bytes so far.
        case size([UInt8])
        case data(UInt64)
        /// The line end after data; the number of its bytes so far.
        case dataEnd(Int)
        /// A trailer, or the empty line that ends them.
        case trailer([UInt8])
        case ended
    }

    /// Maximum length of a line: a size with a signature, or a checksum.
    private static let longestLine = 1024
    private static let mostTrailers = 16

    private var state = State.size([])
    /// Data still to come.
    private var left: UInt64
    /// Trailers: names in lower case, and values.
    package private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []

    /// Creates a decoder of a body with `length` bytes of data.
    package init(length: UInt64) { left = length }

    /// Decodes the next bytes, and calls `data` with each piece.
    package mutating func decode(_ bytes: Span<UInt8>, _ data: (Span<UInt8>) -> Void) throws(Fault) {
        var index = 0
        while index < bytes.count {
            switch state {
            case .size(let line):
                guard let whole = try self.line(line, bytes, &index, as: { .size($0) }) else { return }
                try begin(chunk: whole)
            case .data(let size):
                let count = Int(clamping: min(size, UInt64(bytes.count - index)))
                data(bytes.extracting(index..<index + count))
                index += count
                let rest = size - UInt64(count)
                state = rest == 0 ? .dataEnd(0) : .data(rest)
            case .dataEnd(let count):
                guard bytes[index] == (count == 0 ? UInt8.carriageReturn : .lineFeed) else { throw .framing }
                index += 1
                state = count == 0 ? .dataEnd(1) : .size([])
            case .trailer(let line):
                guard let whole = try self.line(line, bytes, &index, as: { .trailer($0) }) else { return }
                try end(whole)
            case .ended: throw .framing
            }
        }
    }

    /// Ends the body. Some clients leave out the empty line after the last chunk.
    package func finish() throws(Fault) {
        guard left == 0 else { throw .length }
        guard state == .ended || state == .trailer([]) else { throw .framing }
    }

    /// Returns a line without its end, once it is whole.
    private mutating func line(
        _ before: [UInt8], _ bytes: Span<UInt8>, _ index: inout Int, as part: ([UInt8]) -> State
    ) throws(Fault) -> [UInt8]? {
        var line = before
        while index < bytes.count {
            let byte = bytes[index]
            index += 1
            if byte == .lineFeed {
                guard line.last == .carriageReturn else { throw .framing }
                line.removeLast()
                return line
            }
            guard line.count < Self.longestLine else { throw .framing }
            line.append(byte)
        }
        state = part(line)
        return nil
    }

    private mutating func begin(chunk line: [UInt8]) throws(Fault) {
        let digits = line.prefix { $0 != UInt8(ascii: ";") }
        guard (1...16).contains(digits.count) else { throw .framing }
        var size: UInt64 = 0
        for digit in digits {
            guard let value = digit.hexadecimalValue else { throw .framing }
            size = size << 4 | UInt64(value)
        }
        guard size <= left else { throw .length }
        left -= size
        state = size == 0 ? .trailer([]) : .data(size)
    }

    private mutating func end(_ line: [UInt8]) throws(Fault) {
        guard !line.isEmpty else {
            state = .ended
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), line[..<colon].isToken,
            trailers.count < Self.mostTrailers, line.allSatisfy(\.isFieldValue)
        else { throw .framing }
        let value = line[(colon + 1)...].drop(while: \.isBlank)
        trailers.append((line[..<colon].map(\.lowercased), Array(value)))
        state = .trailer([])
    }
}

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
