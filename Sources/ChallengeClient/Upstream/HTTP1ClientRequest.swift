// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Curl
internal import HTTPWire

/// The state of one request and its answer on the connection of an `HTTP1ClientMachine`.
struct HTTP1ClientRequest {
    /// The state of sending the body.
    enum Sending {
        /// The head waits for the first of the body, until the turn's end.
        case held
        /// The body waits for 100 (RFC 9110 §10.1.1).
        case awaitingContinue
        /// The body is sent as supplied by the owner.
        case body
        /// The rest is not sent: the upstream refused the request or answered in place of 100. The connection ends with
        /// this answer (RFC 9112 §9.3).
        case stopped
    }

    private(set) var sending: Sending
    private(set) var reader = HTTP1ResponseReader.start
    /// True if the body is sent in chunks.
    let isChunked: Bool
    /// True if the connection has carried another request before.
    let isReused: Bool
    /// True if any byte of an answer has come.
    private(set) var hasHeard = false
    /// True if the wait of the body for 100 has expired.
    private(set) var hasWaited = false

    init(_ framing: BodyFraming, awaitsContinue: Bool, isReused: Bool) {
        isChunked = framing == .chunked
        sending = awaitsContinue ? .awaitingContinue : .body
        self.isReused = isReused
    }

    /// Returns true if answer and request are complete. `isSent`: all of the request was sent.
    func isOver(isSent: Bool) -> Bool { reader == .whole && (isSent || sending == .stopped) }

    /// Holds the head. Returns false if the body is not to be sent now.
    mutating func hold() -> Bool {
        guard sending == .body else { return false }
        sending = .held
        return true
    }

    /// Ends the hold of the head. Returns true if the head was held.
    mutating func endHold() -> Bool {
        guard sending == .held else { return false }
        sending = .body
        return true
    }

    /// Ends the wait for 100. Returns true if the body was still waiting.
    mutating func endWait() -> Bool {
        guard sending == .awaitingContinue else { return false }
        sending = .body
        hasWaited = true
        return true
    }

    mutating func read(_ bytes: Span<UInt8>, into transfer: Transfer) -> HTTP1ClientMachine.ReadAction {
        hasHeard = true
        let action = reader.read(bytes, into: transfer)
        switch action {
        case .takeInterim(let length, _) where sending == .awaitingContinue && transfer.upload.wasContinued:
            sending = .body
            return .takeInterim(length: length, endsWait: true)
        case .takeHead(_, let status, _) where status >= 300 || sending == .awaitingContinue:
            sending = .stopped
            return action
        default:
            return action
        }
    }
}

/// The chunked framing of a request's body (RFC 9112 §7.1), with its trailer fields.
struct ChunkedBody: ~Copyable {
    private var trailers = ByteQueue()

    /// Removes the trailer fields of the last request.
    mutating func begin() {
        if !trailers.isEmpty { trailers.removeAll(keepingCapacity: 0) }
    }

    /// Adds a trailer field (RFC 9112 §7.1.2). Returns false if the field could be read as two.
    mutating func append(name: Span<UInt8>, value: Span<UInt8>) -> Bool {
        RequestWriter.field(name, value, to: &trailers)
    }

    /// Appends `piece` to `output` as a chunk; at the end of the body also the last chunk and the trailers.
    mutating func frame(_ piece: borrowing ByteQueue, _ supply: BodySupply, to output: inout ByteQueue) {
        piece.withSpan { ResponseWriter.chunk($0, to: &output) }
        guard supply == .end else { return }
        ResponseWriter.lastChunk(to: &output)
        trailers.withSpan { output.append($0) }
        trailers.removeAll(keepingCapacity: 0)
        ResponseWriter.endOfHead(to: &output)
    }
}
