// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Decoder of the chunked coding (RFC 9112 §7.1), byte by byte except for the data.
struct ChunkedDecoder: Sendable {
    /// Maximum data of one step, so that a range can count it.
    static let longestStep = 1 << 30
    /// Maximum for all chunk extensions of a body. They are not in use; many small chunks with long ones are an attack.
    private static let extensionLimit = 16_384

    private enum State {
        case size(UInt64, digits: Int)
        case extensions(ChunkExtensions, size: UInt64)
        case sizeLineFeed(size: UInt64)
        case data(UInt64)
        case dataCarriageReturn, dataLineFeed
        case trailers(TrailerSection)
        case ended
    }

    private(set) var trailers: [FieldLine] = []
    private let limits: HeadLimits
    private var state = State.size(0, digits: 0)
    private var extensionBytes = 0

    init(limits: HeadLimits) {
        self.limits = limits
    }

    /// True if the last chunk and the trailer section have arrived.
    var hasEnded: Bool { if case .ended = state { true } else { false } }

    mutating func decode(_ bytes: Span<UInt8>) throws(WireErrorCode) -> BodyDecoder.Step {
        var position = 0
        while true {
            switch state {
            case .ended:
                return .end(consumed: position)
            case .data(let remaining):
                guard position < bytes.count else { return .needMore(consumed: position) }
                let available = min(bytes.count - position, ChunkedDecoder.longestStep)
                let count = Int(min(remaining, UInt64(available)))
                state = remaining == UInt64(count) ? .dataCarriageReturn : .data(remaining - UInt64(count))
                return .data(ByteRange(start: position, end: position + count), consumed: position + count)
            case .trailers(var section):
                guard let length = try section.scan(bytes, from: position, limits: limits) else {
                    state = .trailers(section)
                    return .needMore(consumed: position)
                }
                trailers = try TrailerSection.fields(bytes, from: position, to: position + length, limits: limits)
                state = .ended
                return .end(consumed: position + length)
            default:
                guard position < bytes.count else { return .needMore(consumed: position) }
                try advance(over: bytes[position])
                position += 1
            }
        }
    }

    /// Advances over a byte that is neither data nor trailer.
    private mutating func advance(over byte: UInt8) throws(WireErrorCode) {
        switch state {
        case .size(let size, let digits):
            try advance(size: size, digits: digits, over: byte)
        case .extensions(var extensions, let size):
            extensionBytes += 1
            guard extensionBytes <= ChunkedDecoder.extensionLimit else { throw .chunkExtensionsTooLong }
            if try extensions.endsAfter(byte) {
                state = .sizeLineFeed(size: size)
            } else {
                state = .extensions(extensions, size: size)
            }
        case .sizeLineFeed(let size):
            guard byte == .lineFeed else { throw .chunkTerminatorInvalid }
            state = size == 0 ? .trailers(TrailerSection()) : .data(size)
        case .dataCarriageReturn:
            guard byte == .carriageReturn else { throw .chunkTerminatorInvalid }
            state = .dataLineFeed
        case .dataLineFeed:
            guard byte == .lineFeed else { throw .chunkTerminatorInvalid }
            state = .size(0, digits: 0)
        case .data, .trailers, .ended:
            break
        }
    }

    /// Advances within a chunk size: `1*HEXDIG`, read without overflow (RFC 9112 §7.1).
    ///
    /// At most sixteen digits, and no more than `Int64.max`.
    private mutating func advance(size: UInt64, digits: Int, over byte: UInt8) throws(WireErrorCode) {
        if let digit = byte.hexadecimalValue {
            guard digits < 16, size <= UInt64(Int64.max) >> 4 else { throw .chunkSizeTooLarge }
            state = .size(size << 4 | UInt64(digit), digits: digits + 1)
            return
        }
        guard digits > 0 else { throw .chunkSizeInvalid }
        switch byte {
        case .carriageReturn:
            state = .sizeLineFeed(size: size)
        case .lineFeed:
            throw .chunkTerminatorInvalid
        case .space, .tab, UInt8(ascii: ";"):
            var extensions = ChunkExtensions()
            _ = try extensions.endsAfter(byte)
            state = .extensions(extensions, size: size)
        default:
            throw .chunkSizeInvalid
        }
    }
}

/// Validator of the extensions after a chunk size, which are then dropped (RFC 9112 §7.1.1).
///
/// `*( BWS ";" BWS name [ BWS "=" BWS ( token / quoted-string ) ] )`. "Bad" white space must be accepted where the
/// grammar has it (RFC 9110 §5.6.3), and nowhere else: `5 CRLF` with a space after the size is refused.
struct ChunkExtensions: Sendable {
    private enum State {
        case beforeSemicolon, beforeName, name, afterName, beforeValue, token, quoted, escaped, afterQuoted
    }

    private var state = State.beforeSemicolon

    /// Consumes one byte; returns true if it was the CR that ends the extensions.
    mutating func endsAfter(_ byte: UInt8) throws(WireErrorCode) -> Bool {
        // A bare LF inside is a means to make two readers see different chunks.
        guard byte != .lineFeed else { throw .chunkTerminatorInvalid }
        switch state {
        case .beforeSemicolon:
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        case .beforeName:
            if ByteClass.token.contains(byte) { state = .name } else if !byte.isBlank { throw .chunkExtensionInvalid }
        case .name:
            if ByteClass.token.contains(byte) { break }
            if byte == .carriageReturn { return true }
            try nameEnd(byte)
        case .afterName:
            try nameEnd(byte)
        case .beforeValue:
            if byte == UInt8(ascii: "\"") {
                state = .quoted
            } else if ByteClass.token.contains(byte) {
                state = .token
            } else if !byte.isBlank {
                throw .chunkExtensionInvalid
            }
        case .token:
            if ByteClass.token.contains(byte) { break }
            if byte == .carriageReturn { return true }
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        case .quoted:
            if byte == UInt8(ascii: "\"") {
                state = .afterQuoted
            } else if byte == UInt8(ascii: "\\") {
                state = .escaped
            } else if !ByteClass.quotedText.contains(byte), byte < 0x80 {
                throw .chunkExtensionInvalid
            }
        case .escaped:
            guard byte.isFieldValue else { throw .chunkExtensionInvalid }
            state = .quoted
        case .afterQuoted:
            if byte == .carriageReturn { return true }
            try separator(byte, blankLeadsTo: .beforeSemicolon)
        }
        return false
    }

    private mutating func nameEnd(_ byte: UInt8) throws(WireErrorCode) {
        if byte == UInt8(ascii: "=") {
            state = .beforeValue
        } else {
            try separator(byte, blankLeadsTo: .afterName)
        }
    }

    private mutating func separator(_ byte: UInt8, blankLeadsTo next: State) throws(WireErrorCode) {
        if byte == UInt8(ascii: ";") {
            state = .beforeName
        } else if byte.isBlank {
            state = next
        } else {
            throw .chunkExtensionInvalid
        }
    }
}
