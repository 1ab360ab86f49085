// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The chunked coding (RFC 9112 section 7.1), byte by byte but for the data.
struct ChunkedDecoder: Sendable {
    /// Data of one step, so that its range can be counted.
    static let longestStep = 1 << 30
    /// Of all chunk extensions of a body. Nobody uses them; many small chunks with long ones are an attack.
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

    /// True if the last chunk and the trailer section have come.
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

    /// Everything but the data and the trailers.
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

    /// `1*HEXDIG`, to be read without overflow (RFC 9112 section 7.1): sixteen digits at most, and no more than an
    /// `Int64` counts.
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
