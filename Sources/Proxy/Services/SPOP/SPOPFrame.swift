// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Frame from HAProxy (SPOE.txt section 3.2): length, type, flags, two numbers, and payload.
struct SPOPFrame: Equatable {
    enum Kind: Equatable {
        case hello
        case disconnect
        case notify
        /// An unknown type, which may be skipped.
        case unknown
    }

    /// The frame size that every peer must accept, in bytes.
    static let smallest = 256
    /// The largest frame size, in bytes. Together with its length, such a frame fills the input window.
    static let largest = CallerStream.inputWindow - lengthBytes
    static let lengthBytes = 4

    let kind: Kind
    /// The number of HAProxy's stream, followed by that of the frame. An answer repeats both.
    let stream: UInt64
    let number: UInt64
    /// The payload of the frame.
    let payload: ByteRange
    /// The size of the whole frame, in bytes.
    let length: Int

    /// Reads the frame at the beginning of `bytes`, of at most `limit` bytes after its length; `nil` if incomplete.
    static func read(_ bytes: Span<UInt8>, limit: Int) throws(SPOPFault) -> SPOPFrame? {
        guard bytes.count >= lengthBytes else { return nil }
        var count = 0
        for index in 0..<lengthBytes { count = count << 8 | Int(bytes[index]) }
        guard count <= limit else { throw .frameTooBig }
        let end = lengthBytes + count
        guard bytes.count >= end else { return nil }
        var scanner = SPOPScanner(ByteRange(start: lengthBytes, end: end))
        let type = try scanner.byte(in: bytes)
        var flags: UInt32 = 0
        for _ in 0..<4 { flags = flags << 8 | UInt32(try scanner.byte(in: bytes)) }
        // This agent has not announced support for fragments.
        guard type != 0, flags & 1 != 0 else { throw .fragmentationUnsupported }
        let kind: Kind =
            switch type {
            case 1: .hello
            case 2: .disconnect
            case 3: .notify
            default: .unknown
            }
        let (stream, number) = (try scanner.number(in: bytes), try scanner.number(in: bytes))
        return SPOPFrame(
            kind: kind, stream: stream, number: number,
            payload: ByteRange(start: scanner.position, end: end), length: end)
    }
}

/// Reads the elements of a frame in order (SPOE.txt section 3.1). An element beyond the end is a fault.
struct SPOPScanner {
    /// A typed value, as far as this agent uses it.
    enum Value: Equatable {
        case flag(Bool)
        case number(UInt64)
        /// A string or binary value; the difference does not matter here.
        case text(ByteRange)
        /// Null, or an address.
        case other
    }

    private(set) var position: Int
    private let end: Int

    init(_ range: ByteRange) {
        position = range.start
        end = range.end
    }

    /// True at the end of the range.
    var isAtEnd: Bool { position == end }

    mutating func byte(in bytes: Span<UInt8>) throws(SPOPFault) -> UInt8 {
        guard position < end else { throw .frameInvalid }
        defer { position += 1 }
        return bytes[position]
    }

    /// Reads a variable-length integer: one byte below 240, else its low four bits and seven bits of each following byte, low
    /// ones first.
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

    /// Reads the bytes of a string.
    mutating func text(in bytes: Span<UInt8>) throws(SPOPFault) -> ByteRange {
        let count = try number(in: bytes)
        guard count <= UInt64(end - position) else { throw .frameInvalid }
        return skip(Int(count))
    }

    /// Reads a typed value.
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

/// The reason to end a connection; the raw value is the status code of a DISCONNECT frame (SPOE.txt section 3.5).
enum SPOPFault: UInt32, Error, Sendable {
    /// No fault: the connection is not needed any more.
    case none = 0
    case timeout = 2
    case frameTooBig = 3
    case frameInvalid = 4
    case versionMissing = 5
    case frameSizeMissing = 6
    case capabilitiesMissing = 7
    case versionUnsupported = 8
    case frameSizeUnsupported = 9
    case fragmentationUnsupported = 10

    /// The message for HAProxy's log.
    var message: StaticString {
        switch self {
        case .none: "countersign closes this connection"
        case .timeout: "a frame did not come in time"
        case .frameTooBig: "frame is too big"
        case .frameInvalid: "invalid frame received"
        case .versionMissing: "version value not found"
        case .frameSizeMissing: "max-frame-size value not found"
        case .capabilitiesMissing: "capabilities value not found"
        case .versionUnsupported: "unsupported version: countersign speaks 2.0"
        case .frameSizeUnsupported: "max-frame-size too small"
        case .fragmentationUnsupported: "payload fragmentation is not supported"
        }
    }
}
