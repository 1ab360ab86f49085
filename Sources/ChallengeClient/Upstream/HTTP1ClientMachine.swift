// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// The client's side of one HTTP/1.1 connection (RFC 9112): sending, reading, and reuse.
///
/// Value type without clock and socket. The transfer passed with each event records the answer, and knows how much of
/// the request's body is left. Each event has its own small enum of actions, which `HTTP1Stream` carries out. An event
/// that the state does not allow traps in debug builds, and changes nothing in release builds.
struct HTTP1ClientMachine: ~Copyable {
    private enum State {
        /// No request has come yet.
        case unconnected
        /// The request waits for the connection.
        case connecting(HTTP1ClientRequest)
        case running(HTTP1ClientRequest)
        /// The answer is complete, or nothing was sent. The connection can take another request once the owner releases
        /// the present one.
        case ended
        /// The connection is idle between two requests.
        case idle
        /// The final head was a 101.
        case switched
        /// The connection is finished. `wasIgnored`: it was reused, and ended without a byte of an answer to the last
        /// request.
        case over(wasIgnored: Bool)
    }

    /// The largest piece of a request's body sent at once, in bytes.
    static let bodyPiece = 64 * 1024

    private var state = State.unconnected
    /// The number of events that the state did not allow.
    private(set) var misuses = 0
    private let trapsMisuse: Bool

    /// Creates a machine without a connection.
    init(trapsMisuse: Bool = true) { self.trapsMisuse = trapsMisuse }

    // MARK: State

    /// True if a request is under way on the connection.
    var isRunning: Bool { if case .running = state { true } else { false } }
    var isConnecting: Bool { if case .connecting = state { true } else { false } }
    var isIdle: Bool { if case .idle = state { true } else { false } }
    /// True if the final head was a 101.
    var hasSwitched: Bool { if case .switched = state { true } else { false } }
    /// True if the body waits for 100 (RFC 9110 §10.1.1).
    var awaitsContinue: Bool { sending == .awaitingContinue }
    /// True if the head waits for the body, until the end of the loop's turn.
    var isHeld: Bool { sending == .held }
    /// True if the wait of the current request's body for 100 has expired.
    var hasWaited: Bool { if case .running(let request) = state { request.hasWaited } else { false } }
    /// True if a reused connection ended without an answer to the last request (RFC 9112 §9.3.1).
    var wasIgnored: Bool { if case .over(let wasIgnored) = state { wasIgnored } else { false } }
    private var sending: HTTP1ClientRequest.Sending? {
        if case .running(let request) = state { request.sending } else { nil }
    }

    /// Returns true if a 408 that ends the connection may concern its idle time, so that `request` is sent again.
    func mayMeetIdleTimeout(_ request: ExchangeRequest) -> Bool { isIdle && request.canResend }

    /// Returns the events to watch for. `hasOutput`: bytes wait to be sent.
    func interest(isPaused: Bool, hasOutput: Bool) -> Interest {
        guard case .running(let request) = state else { return [] }
        var interest: Interest = []
        if !isPaused, request.reader != .whole { interest.insert(.read) }
        if hasOutput, request.sending != .held { interest.insert(.write) }
        return interest
    }

    // MARK: Sending

    /// Begins a request. `awaitsContinue`: its body waits for 100.
    mutating func begin(_ framing: BodyFraming, awaitsContinue: Bool) -> BeginAction {
        switch state {
        case .unconnected:
            state = .connecting(HTTP1ClientRequest(framing, awaitsContinue: awaitsContinue, isReused: false))
            return .connect
        case .idle:
            state = .running(HTTP1ClientRequest(framing, awaitsContinue: awaitsContinue, isReused: true))
            return .send
        case .connecting, .running, .ended, .switched, .over:
            misused("begin")
            return .refuse
        }
    }

    /// Continues after the connection is established.
    mutating func connected() -> ConnectAction {
        guard case .connecting(let request) = state else { return .nothing }
        state = .running(request)
        return .send
    }

    /// Returns the next piece of the body to send.
    func bodyToSend(of transfer: Transfer) -> SendAction {
        guard case .running(let request) = state, request.sending == .body, !transfer.upload.isComplete,
            !transfer.awaitsBody
        else { return .nothing }
        let limit = transfer.upload.next(upTo: Self.bodyPiece)
        return request.isChunked ? .chunk(upTo: limit) : .piece(upTo: limit)
    }

    /// Holds the head for a body not received yet: both usually come from the caller at once, and are sent at once.
    mutating func holdHead() {
        guard case .running(var request) = state, request.hold() else { return misused("holdHead") }
        state = .running(request)
    }

    /// Ends the hold of the head. Returns true if the head was held.
    mutating func endHold() -> Bool {
        guard case .running(var request) = state, request.endHold() else { return false }
        state = .running(request)
        return true
    }

    /// Ends the wait for 100. Returns true if the body is sent now.
    mutating func endWait() -> Bool {
        guard case .running(var request) = state, request.endWait() else { return false }
        state = .running(request)
        return true
    }

    // MARK: Receiving

    /// Processes the next part of `bytes`, which holds everything received and not consumed.
    mutating func read(_ bytes: Span<UInt8>, into transfer: Transfer) -> ReadAction {
        guard case .running(var request) = state else {
            misused("read")
            return .stop
        }
        guard !bytes.isEmpty else { return .wait }
        let action = request.read(bytes, into: transfer)
        state = .running(request)
        return action
    }

    /// Handles the end of the upstream's sending side.
    mutating func inputEnded() -> InputEndAction {
        guard case .running(let request) = state else {
            misused("inputEnded")
            return .finish
        }
        if case .head = request.reader { return request.hasHeard ? .failWithinHead : .failUnheard }
        return .finish
    }

    /// Decides after sending or receiving. `isSent`: all of the request was sent.
    mutating func settle(isSent: Bool) -> SettleAction {
        guard case .running(let request) = state else { return .proceed }
        if request.reader == .switched {
            state = .switched
            return .switchProtocol
        }
        return request.isOver(isSent: isSent) ? .finish : .proceed
    }

    // MARK: Ends

    /// Ends the request and decides if the connection can take another (RFC 9112 §9.3).
    ///
    /// `isKept`: heads and buffers allow that; before the request is sent, that the connection is established.
    mutating func end(isKept: Bool) -> EndAction {
        switch state {
        case .running(let request) where request.reader == .whole && isKept:
            state = .ended
            return .keep
        case .running(let request):
            state = .over(wasIgnored: request.isReused && !request.hasHeard)
        case .connecting where isKept:
            // The connection is there, and the request is not sent on it.
            state = .ended
            return .keep
        case .connecting:
            state = .over(wasIgnored: false)
        case .unconnected, .ended, .idle, .switched, .over:
            misused("end")
        }
        return .close
    }

    /// Makes the connection idle after its owner released the request. Returns true if another request can follow.
    mutating func becomeIdle() -> Bool {
        guard case .ended = state else { return false }
        state = .idle
        return true
    }

    /// Returns the reaction to an event on the socket.
    func ready() -> ReadyAction {
        switch state {
        case .running: .advance
        case .ended, .idle: .close
        case .unconnected, .connecting, .switched, .over: .nothing
        }
    }

    /// Records that the connection is closed.
    mutating func close() {
        state = .over(wasIgnored: wasIgnored)
    }

    private mutating func misused(_ event: StaticString) {
        misuses += 1
        assert(!trapsMisuse, "HTTP1ClientMachine: \(event) is not allowed now")
    }
}

// The actions of `HTTP1ClientMachine`: one small enum for each event.
extension HTTP1ClientMachine {
    enum BeginAction: Equatable {
        /// Connect; the request waits for that.
        case connect
        /// Send the head on the existing connection.
        case send
        /// Refuse the request: the connection accepts no request now.
        case refuse
    }

    enum ConnectAction: Equatable {
        /// Send the head.
        case send
        case nothing
    }

    enum SendAction: Equatable {
        case nothing
        /// Ask the owner for up to that many bytes of the body. Send them unframed.
        case piece(upTo: Int)
        /// Ask the owner for up to that many bytes of the body. Send them as a chunk (RFC 9112 §7.1).
        case chunk(upTo: Int)
    }

    enum ReadAction: Equatable {
        /// Receive more.
        case wait
        /// Consume an interim head. `endsWait`: the body that waited for 100 is sent now.
        case takeInterim(length: Int, endsWait: Bool)
        /// Consume the final head.
        ///
        /// `isUntilEnd`: only the end of the connection ends the answer; over TLS that end must be announced.
        case takeHead(length: Int, status: Int, isUntilEnd: Bool)
        /// Consume that many bytes of the body.
        case takeBody(length: Int)
        /// Stop receiving: a window is full, or nothing that follows belongs to this answer.
        case stop
        /// End the request: the answer is invalid or unwanted. The transfer has recorded the reason.
        case refuse
    }

    enum InputEndAction: Equatable {
        /// End the request; the transfer knows if the answer is complete.
        case finish
        /// End the request, whose answer broke off within a head.
        case failWithinHead
        /// End the request, to which no byte of an answer has come.
        case failUnheard
    }

    enum SettleAction: Equatable {
        case proceed
        /// End the request: request and answer are complete, or the rest of the request is not needed.
        case finish
        /// Leave the connection to the other protocol.
        case switchProtocol
    }

    enum EndAction: Equatable {
        /// Keep the connection for another request.
        case keep
        case close
    }

    enum ReadyAction: Equatable {
        /// Send and receive.
        case advance
        /// Close the connection: it has ended, or received bytes that answer no request (RFC 9112 §9.2).
        case close
        case nothing
    }
}
