// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Finds the data of a request's body between its framing.
///
/// A value without memory of its own: the data stays where it is, and the caller forgets what a step has consumed. Bytes
/// that are not consumed come again at the start of the next call.
public struct BodyDecoder: Sendable {
    /// What one call found.
    public enum Step: Equatable, Sendable {
        /// Data; `consumed` bytes, the data among them, are done with.
        case data(ByteRange, consumed: Int)
        /// Nothing more in these bytes; `consumed` of them are done with.
        case needMore(consumed: Int)
        /// The body has ended; what follows the `consumed` bytes is the next message. Trailers are in `trailers`.
        case end(consumed: Int)
        /// The framing is broken. Nothing later on the connection can be trusted.
        case refused(WireError)
    }

    private enum State {
        case length(UInt64)
        case chunked(ChunkedDecoder)
        case refused(WireError)
    }

    private var state: State

    /// A decoder for a body of that framing, whose trailer section is held to `trailerLimits`.
    public init(framing: BodyFraming, trailerLimits: HeadLimits = HeadLimits(head: 8_192, fieldCount: 32)) {
        state =
            switch framing {
            case .none: .length(0)
            case .length(let length): .length(length)
            case .chunked: .chunked(ChunkedDecoder(limits: trailerLimits))
            }
    }

    /// Once the body has ended: the trailer fields that may be forwarded, as ranges into the bytes of that last call.
    public var trailers: [FieldLine] {
        if case .chunked(let decoder) = state { decoder.trailers } else { [] }
    }

    /// True if the body has ended, trailers included.
    public var hasEnded: Bool {
        switch state {
        case .length(let remaining): remaining == 0
        case .chunked(let decoder): decoder.hasEnded
        case .refused: false
        }
    }

    /// The number of bytes of data still to come, where the framing tells.
    public var remaining: UInt64? {
        if case .length(let remaining) = state { remaining } else { nil }
    }

    /// Takes one step in `bytes`. After `end` and `refused` every further step says the same and consumes nothing.
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
