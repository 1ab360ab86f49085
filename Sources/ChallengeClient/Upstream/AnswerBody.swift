// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The body of an upstream's answer, and where it ends (RFC 9112 §6.3), as we read it ourselves.
///
/// libcurl frames bodies too, but it takes chunks for well-formed that no sender may send, and drops in silence what comes
/// behind the last one. So it hands chunks over as they came, and whether an answer is whole is said here.
struct AnswerBody: ~Copyable {
    /// What became of a piece.
    enum Outcome {
        /// It is taken.
        case taken
        /// It is taken, or the part that belongs to the body; what comes behind the body belongs to no answer.
        case beyondEnd
        /// The framing is broken.
        case broken(WireErrorCode)
    }

    private enum Framing {
        case length(UInt64)
        case chunked(BodyDecoder)
        case untilEnd
    }

    private var framing = Framing.untilEnd
    /// What of the trailer section has come; it is read when it is whole.
    private var rest = ByteQueue()
    /// The trailer fields that may go further.
    var trailers = TrailerLines()
    /// True if all of it has come. One that only the connection ends never tells.
    private(set) var isWhole = false

    /// True if only the end of the connection, or of the stream, ends it.
    var isUntilEnd: Bool { if case .untilEnd = framing { true } else { false } }

    /// Begins with the body behind `head`. `isBodyless`: the request was HEAD, whose answers have none.
    mutating func begin(behind head: ResponseHead, isBodyless: Bool) {
        rest.removeAll()
        trailers.removeAll()
        if isBodyless || head.status == 204 || head.status == 304 {
            framing = .length(0)
        } else if head.isChunked {
            framing = .chunked(BodyDecoder(framing: .chunked))
        } else if let length = head.contentLength {
            framing = .length(length)
        } else {
            framing = .untilEnd
        }
        isWhole = false
        if case .length(0) = framing { isWhole = true }
    }

    /// Appends what of `bytes` is data to `body`.
    mutating func take(_ bytes: Span<UInt8>, into body: inout ByteQueue) -> Outcome {
        switch framing {
        case .length(let left):
            let count = bytes.count
            guard UInt64(count) <= left else {
                body.append(bytes.extracting(0..<Int(left)))
                framing = .length(0)
                isWhole = true
                return .beyondEnd
            }
            body.append(bytes)
            framing = .length(left - UInt64(count))
            isWhole = left == UInt64(count)
            return .taken
        case .untilEnd:
            body.append(bytes)
            return .taken
        case .chunked(var decoder):
            let outcome = decode(bytes, with: &decoder, into: &body)
            framing = .chunked(decoder)
            return outcome
        }
    }

    private mutating func decode(
        _ bytes: Span<UInt8>, with decoder: inout BodyDecoder, into body: inout ByteQueue
    ) -> Outcome {
        if rest.isEmpty {
            let (outcome, consumed) = Self.decode(bytes, with: &decoder, into: &body, trailers: &trailers)
            if case .taken = outcome { rest.append(bytes.extracting(consumed...)) }
            return end(outcome, decoder)
        }
        rest.append(bytes)
        let (outcome, consumed) = rest.withSpan { Self.decode($0, with: &decoder, into: &body, trailers: &trailers) }
        rest.consume(consumed)
        return end(outcome, decoder)
    }

    private mutating func end(_ outcome: Outcome, _ decoder: BodyDecoder) -> Outcome {
        isWhole = decoder.hasEnded
        return outcome
    }

    /// Returns also how many bytes are done with.
    private static func decode(
        _ bytes: Span<UInt8>, with decoder: inout BodyDecoder, into body: inout ByteQueue,
        trailers: inout TrailerLines
    ) -> (Outcome, consumed: Int) {
        var position = 0
        while true {
            let left = bytes.extracting(position...)
            switch decoder.decode(left) {
            case .data(let range, let consumed):
                body.append(left.extracting(range.bounds))
                position += consumed
            case .needMore(let consumed):
                return (.taken, position + consumed)
            case .end(let consumed):
                if consumed > 0 { trailers.append(decoder.trailers, in: left) }
                position += consumed
                return (position < bytes.count ? .beyondEnd : .taken, position)
            case .refused(let error):
                return (.broken(error.code), position)
            }
        }
    }
}
