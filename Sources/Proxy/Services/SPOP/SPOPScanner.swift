// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Reads the elements of a frame, one after the other (SPOE.txt section 3.1). What goes beyond the end is a fault.
struct SPOPScanner {
    /// A value, as far as it is of use here.
    enum Value: Equatable {
        case flag(Bool)
        case number(UInt64)
        /// A string or binary, which nothing here tells apart.
        case text(ByteRange)
        /// None, or an address.
        case other
    }

    private(set) var position: Int
    private let end: Int

    init(_ range: ByteRange) {
        position = range.start
        end = range.end
    }

    /// True if all is read.
    var isAtEnd: Bool { position == end }

    mutating func byte(in bytes: Span<UInt8>) throws(SPOPFault) -> UInt8 {
        guard position < end else { throw .frameInvalid }
        defer { position += 1 }
        return bytes[position]
    }

    /// A variable-length integer: one byte below 240, else four bits of it and seven of each that follows, the low ones first.
    mutating func number(in bytes: Span<UInt8>) throws(SPOPFault) -> UInt64 {
        var value = UInt64(try byte(in: bytes))
        guard value >= 240 else { return value }
        var shift: UInt64 = 4
        while true {
            let next = UInt64(try byte(in: bytes))
            let part = next << shift
            let (sum, isTooLarge) = value.addingReportingOverflow(part)
            guard shift < 64, part >> shift == next, !isTooLarge else { throw .frameInvalid }
            value = sum
            if next < 128 { return value }
            shift += 7
        }
    }

    /// The bytes of a string.
    mutating func text(in bytes: Span<UInt8>) throws(SPOPFault) -> ByteRange {
        let count = try number(in: bytes)
        guard count <= UInt64(end - position) else { throw .frameInvalid }
        return skip(Int(count))
    }

    /// A typed value.
    mutating func value(in bytes: Span<UInt8>) throws(SPOPFault) -> Value {
        let type = try byte(in: bytes)
        switch type & 15 {
        case 0: return .other
        case 1: return .flag(type & 16 != 0)
        case 2...5: return .number(try number(in: bytes))
        case 6, 7:
            let count = type & 15 == 6 ? 4 : 16
            guard count <= end - position else { throw .frameInvalid }
            _ = skip(count)
            return .other
        case 8, 9: return .text(try text(in: bytes))
        default: throw .frameInvalid
        }
    }

    private mutating func skip(_ count: Int) -> ByteRange {
        defer { position += count }
        return ByteRange(start: position, end: position + count)
    }
}
