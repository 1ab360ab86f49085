// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Length of a request's body (RFC 9112 §6.3).
public enum BodyFraming: Equatable, Sendable {
    /// No body.
    case none
    /// A number of bytes; at most `Int64.max`, the largest that files and libcurl can count.
    case length(UInt64)
    /// Chunks up to the last one (RFC 9112 §7.1).
    case chunked

    /// True if nothing follows the head; `Content-Length: 0` counts as no body.
    public var isEmpty: Bool { self == .none || self == .length(0) }
}

extension BodyFraming {
    /// Parses `Content-Length`: digits only, without plus or minus, list or overflow (RFC 9110 §8.6).
    static func length(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) -> UInt64 {
        guard !value.isEmpty else { throw .contentLengthInvalid }
        var length: UInt64 = 0
        var overflow = false
        for index in value.start..<value.end {
            guard bytes[index].isDigit else { throw .contentLengthInvalid }
            let (product, tooLarge) = length.multipliedReportingOverflow(by: 10)
            let (sum, larger) = product.addingReportingOverflow(UInt64(bytes[index] &- 0x30))
            overflow = overflow || tooLarge || larger
            length = sum
        }
        guard !overflow, length <= UInt64(Int64.max) else { throw .contentLengthTooLarge }
        return length
    }

    /// Checks that the `Transfer-Encoding` of a request is a single `chunked`, in any case.
    ///
    /// A well-formed list of other codings that ends in a single chunked is 501 (RFC 9112 §6.1). Everything else leaves
    /// the length open or unclear and is 400 (RFC 9112 §6.3).
    static func checkTransferEncoding(_ bytes: Span<UInt8>, _ value: ByteRange) throws(WireErrorCode) {
        if bytes.matches(value, ignoringCase: "chunked") { return }
        var elements = ListElements(value)
        var chunked = false
        var other = false
        // A trailing comma is an empty element: harmless in other lists, but here a hint that something is being
        // hidden.
        guard !value.isEmpty, bytes[value.end - 1] != UInt8(ascii: ","), bytes[value.start] != UInt8(ascii: ",") else {
            throw .transferEncodingInvalid
        }
        while let coding = try elements.next(in: bytes, orThrow: .transferEncodingInvalid) {
            guard !chunked, !bytes.matches(coding, ignoringCase: "identity") else { throw .transferEncodingInvalid }
            if bytes.matches(coding, ignoringCase: "chunked") { chunked = true } else { other = true }
        }
        throw chunked && other ? .transferEncodingUnknown : .transferEncodingInvalid
    }
}

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
