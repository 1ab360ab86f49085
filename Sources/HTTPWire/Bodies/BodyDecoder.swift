// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Decoder that finds the data of a request's body within its framing.
///
/// A value without a buffer: the data stays in place, and the caller discards the bytes that a step consumed. Other
/// bytes must come again at the start of the next call.
public struct BodyDecoder: Sendable {
    /// Result of one call.
    public enum Step: Equatable, Sendable {
        /// Data; `consumed` bytes, including the data, can be discarded.
        case data(ByteRange, consumed: Int)
        /// No more data in these bytes; `consumed` of them can be discarded.
        case needMore(consumed: Int)
        /// End of the body; the next message follows the `consumed` bytes. `trailers` has the trailers.
        case end(consumed: Int)
        /// Broken framing. Nothing later on the connection can be trusted.
        case refused(WireError)
    }

    private enum State {
        case length(UInt64)
        case chunked(ChunkedDecoder)
        case refused(WireError)
    }

    private var state: State

    /// Creates a decoder for a framing, with limits for the trailer section.
    public init(framing: BodyFraming, trailerLimits: HeadLimits = HeadLimits(head: 8_192, fieldCount: 32)) {
        state =
            switch framing {
            case .none: .length(0)
            case .length(let length): .length(length)
            case .chunked: .chunked(ChunkedDecoder(limits: trailerLimits))
            }
    }

    /// Forwardable trailer fields once the body has ended, as ranges of the bytes of the last call.
    public var trailers: [FieldLine] {
        if case .chunked(let decoder) = state { decoder.trailers } else { [] }
    }

    /// True if the body has ended, including trailers.
    public var hasEnded: Bool {
        switch state {
        case .length(let remaining): remaining == 0
        case .chunked(let decoder): decoder.hasEnded
        case .refused: false
        }
    }

    /// Number of data bytes still to come, if the framing has a length.
    public var remaining: UInt64? {
        if case .length(let remaining) = state { remaining } else { nil }
    }

    /// Decodes one step; after `end` or `refused`, repeats the result and consumes nothing.
    public mutating func decode(_ bytes: Span<UInt8>) -> Step {
        switch state {
        case .length(0):
            return .end(consumed: 0)
        case .length(let remaining):
            guard !bytes.isEmpty else { return .needMore(consumed: 0) }
            let count = Int(min(remaining, UInt64(min(bytes.count, ChunkedDecoder.longestStep))))
            state = .length(remaining - UInt64(count))
            return .data(ByteRange(start: 0, end: count), consumed: count)
        case .chunked(var decoder):
            do throws(WireErrorCode) {
                let step = try decoder.decode(bytes)
                state = .chunked(decoder)
                return step
            } catch {
                state = .refused(WireError(error))
                return .refused(WireError(error))
            }
        case .refused(let error):
            return .refused(error)
        }
    }
}
