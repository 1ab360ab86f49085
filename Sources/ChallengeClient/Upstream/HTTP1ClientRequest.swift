// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// One request on the connection of an `HTTP1ClientMachine`, and its answer, as far as both have gone.
struct HTTP1ClientRequest {
    /// The reason for which the body goes, or does not.
    enum Sending {
        /// The head waits for the first bytes of the body, until the end of the loop's turn.
        case held
        /// The body waits for the upstream's word (RFC 9110 §10.1.1).
        case awaitingContinue
        /// The body goes as it comes from the owner.
        case body
        /// The rest is of no interest to the upstream: it has refused the request, or answered in place of the word that the body
        /// waits for. The connection ends with this answer (RFC 9112 §9.3).
        case stopped
    }

    private(set) var sending: Sending
    private(set) var reader = HTTP1ResponseReader.start
    /// True if the body goes in chunks.
    let isChunked: Bool
    /// True if the connection has carried another request before.
    let isReused: Bool
    /// True if any byte of an answer has come.
    private(set) var hasHeard = false
    /// True if the body has waited for 100 in vain.
    private(set) var hasWaited = false

    init(_ framing: BodyFraming, awaitsContinue: Bool, isReused: Bool) {
        isChunked = framing == .chunked
        sending = awaitsContinue ? .awaitingContinue : .body
        self.isReused = isReused
    }

    /// True if the answer is whole, and with it the request as far as it will be sent. `isSent`: all of the request has gone.
    func isOver(isSent: Bool) -> Bool { reader == .whole && (isSent || sending == .stopped) }

    /// Has the head wait. False if the body is not to be sent now.
    mutating func hold() -> Bool {
        guard sending == .body else { return false }
        sending = .held
        return true
    }

    /// The head waits no longer. Returns whether it has waited.
    mutating func endHold() -> Bool {
        guard sending == .held else { return false }
        sending = .body
        return true
    }

    /// The time is over for which the body waits for 100. Returns whether it has waited until now.
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
