// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The body of an upstream's answer and its framing (RFC 9112 §6.3), decoded here.
///
/// libcurl frames bodies too, but accepts malformed chunks and silently drops bytes after the last one. So chunks are
/// taken from libcurl as received, and completeness is decided here.
struct AnswerBody: ~Copyable {
    /// The outcome of appending a piece.
    enum Outcome {
        /// The piece was appended.
        case taken
        /// The piece, or its part within the body, was appended; the bytes after the body belong to no answer.
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
    /// The received part of the trailer section; parsed once complete.
    private var rest = ByteQueue()
    /// The trailer fields that may be forwarded.
    var trailers = TrailerLines()
    /// True if the body is complete. Stays false for one ended only by the connection.
    private(set) var isWhole = false

    /// True if only the end of the connection or stream ends the body.
    var isUntilEnd: Bool { if case .untilEnd = framing { true } else { false } }

    /// Begins with the body after `head`. `isBodyless`: the request was HEAD, whose answers have no body.
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

    /// Appends the data in `bytes` to `body`.
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

    /// Returns also the number of bytes consumed.
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

/// Interim response heads (RFC 9110 §15.2) waiting to be passed to the transfer's owner.
struct InterimHeads: ~Copyable {
    /// The limit of interim heads before the final one.
    static let maximum = 64
    /// The limit of their total size in bytes.
    static let limit = 64 * 1024

    private var bytes = ByteQueue()
    private var lengths: [Int] = []
    private var count = 0
    private var size = 0

    /// True if no head is waiting.
    var isEmpty: Bool { lengths.isEmpty }

    /// Appends a well-formed head with its empty line. Returns false if there were too many.
    mutating func append(_ head: Span<UInt8>) -> Bool {
        count += 1
        size += head.count
        guard count <= Self.maximum, size <= Self.limit else { return false }
        bytes.append(head)
        lengths.append(head.count)
        return true
    }

    /// Passes the waiting heads to `body` in order, and removes them.
    mutating func take(_ body: (_ head: ResponseHead, _ bytes: Span<UInt8>) -> Void) {
        var scanner = ResponseHeadScanner()
        for length in lengths {
            bytes.withSpan { all in
                let bytes = all.extracting(0..<min(length, all.count))
                guard case .some = try? scanner.scan(bytes) else { return }
                body(scanner.head, bytes)
            }
            bytes.consume(length)
        }
        lengths = []
    }

    /// Removes all heads, and resets the counters.
    mutating func removeAll() {
        guard count > 0 else { return }
        bytes.removeAll(keepingCapacity: 0)
        lengths = []
        count = 0
        size = 0
    }
}
