// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// The client's side of one HTTP/1.1 connection (RFC 9112): what of a request is sent next, what the bytes of its answer mean, and
/// if the connection can take another request.
///
/// A value without clock and socket. The transfer that goes with each event notes what has come of the answer, and knows how much
/// of the request's body is left. Each event has its own small enum of actions, which `HTTP1Stream` carries out. An event that
/// the state does not allow traps in debug builds, and changes nothing in release builds.
struct HTTP1ClientMachine: ~Copyable {
    private enum State {
        /// No request has come yet.
        case unconnected
        /// The request waits for the connection.
        case connecting(HTTP1ClientRequest)
        case running(HTTP1ClientRequest)
        /// The answer is whole, and the connection can take another request once the owner lets go of this one.
        case ended
        /// The connection waits for its next request.
        case resting
        /// The final head was a 101.
        case switched
        /// Nothing more is done on the connection. `wasIgnored`: it had carried other requests before, and ended without a byte of an
        /// answer to the last one.
        case over(wasIgnored: Bool)
    }

    /// The longest piece of a request's body that is sent at once, in bytes.
    static let bodyPiece = 64 * 1024

    private var state = State.unconnected
    /// Events that the state did not allow.
    private(set) var misuses = 0
    private let trapsMisuse: Bool

    /// A connection that is not made yet.
    init(trapsMisuse: Bool = true) { self.trapsMisuse = trapsMisuse }

    // MARK: State

    /// True if a request is under way on the connection.
    var isRunning: Bool { if case .running = state { true } else { false } }
    var isConnecting: Bool { if case .connecting = state { true } else { false } }
    var isResting: Bool { if case .resting = state { true } else { false } }
    /// True if the final head was a 101.
    var hasSwitched: Bool { if case .switched = state { true } else { false } }
    /// True if the body waits for the upstream's word (RFC 9110 §10.1.1).
    var awaitsContinue: Bool { sending == .awaitingContinue }
    /// True if the head waits for the body, until the end of the loop's turn.
    var isHeld: Bool { sending == .held }
    /// True if the body of the present request has waited for 100 in vain.
    var hasWaited: Bool { if case .running(let request) = state { request.hasWaited } else { false } }
    /// True if the connection, which had carried other requests, has ended without a byte on the last one (RFC 9112 §9.3.1).
    var wasIgnored: Bool { if case .over(let wasIgnored) = state { wasIgnored } else { false } }
    private var sending: HTTP1ClientRequest.Sending? {
        if case .running(let request) = state { request.sending } else { nil }
    }

    /// Returns what the loop is to tell of. `hasOutput`: something waits to be sent.
    func interest(isPaused: Bool, hasOutput: Bool) -> Interest {
        guard case .running(let request) = state else { return [] }
        var interest: Interest = []
        if !isPaused, request.reader != .whole { interest.insert(.read) }
        if hasOutput, request.sending != .held { interest.insert(.write) }
        return interest
    }

    // MARK: Sending

    /// A request begins. `awaitsContinue`: its body waits for 100.
    mutating func begin(_ framing: BodyFraming, awaitsContinue: Bool) -> BeginAction {
        switch state {
        case .unconnected:
            state = .connecting(HTTP1ClientRequest(framing, awaitsContinue: awaitsContinue, isReused: false))
            return .connect
        case .resting:
            state = .running(HTTP1ClientRequest(framing, awaitsContinue: awaitsContinue, isReused: true))
            return .send
        case .connecting, .running, .ended, .switched, .over:
            misused("begin")
            return .refuse
        }
    }

    /// The connection is there.
    mutating func connected() -> ConnectAction {
        guard case .connecting(let request) = state else { return .nothing }
        state = .running(request)
        return .send
    }

    /// Returns what of the body is sent next.
    func bodyToSend(of transfer: Transfer) -> SendAction {
        guard case .running(let request) = state, request.sending == .body, !transfer.upload.isComplete,
            !transfer.awaitsBody
        else { return .nothing }
        let limit = transfer.upload.next(upTo: Self.bodyPiece)
        return request.isChunked ? .chunk(upTo: limit) : .piece(upTo: limit)
    }

    /// The head waits for the body, of which nothing is here yet: mostly both have come from the caller at once, and so leave at once.
    mutating func holdHead() {
        guard case .running(var request) = state, request.hold() else { return misused("holdHead") }
        state = .running(request)
    }

    /// The head waits no longer. Returns whether it has waited.
    mutating func endHold() -> Bool {
        guard case .running(var request) = state, request.endHold() else { return false }
        state = .running(request)
        return true
    }

    /// The time is over for which the body waits for 100. Returns whether it goes now.
    mutating func endWait() -> Bool {
        guard case .running(var request) = state, request.endWait() else { return false }
        state = .running(request)
        return true
    }

    // MARK: Receiving

    /// Takes the next step in `bytes`, which are all that have come and are not done with.
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

    /// The upstream has ended its side.
    mutating func inputEnded() -> InputEndAction {
        guard case .running(let request) = state else {
            misused("inputEnded")
            return .finish
        }
        if case .head = request.reader { return request.hasHeard ? .failWithinHead : .failUnheard }
        return .finish
    }

    /// Something was sent or received. `isSent`: all of the request has gone.
    mutating func settle(isSent: Bool) -> SettleAction {
        guard case .running(let request) = state else { return .goOn }
        if request.reader == .switched {
            state = .switched
            return .switchProtocol
        }
        return request.isOver(isSent: isSent) ? .finish : .goOn
    }

    // MARK: Ends

    /// The request is over. Whether the connection can take another is known now (RFC 9112 §9.3): `isKept` says that it may, as far
    /// as heads and buffers go.
    mutating func end(isKept: Bool) -> EndAction {
        switch state {
        case .running(let request) where request.reader == .whole && isKept:
            state = .ended
            return .keep
        case .running(let request):
            state = .over(wasIgnored: request.isReused && !request.hasHeard)
        case .connecting:
            state = .over(wasIgnored: false)
        case .unconnected, .ended, .resting, .switched, .over:
            misused("end")
        }
        return .close
    }

    /// The owner has let go of the request. Returns whether the connection waits for another.
    mutating func rest() -> Bool {
        guard case .ended = state else { return false }
        state = .resting
        return true
    }

    /// The socket is ready.
    func ready() -> ReadyAction {
        switch state {
        case .running: .advance
        case .ended, .resting: .close
        case .unconnected, .connecting, .switched, .over: .nothing
        }
    }

    /// The connection is closed.
    mutating func close() {
        state = .over(wasIgnored: wasIgnored)
    }

    private mutating func misused(_ event: StaticString) {
        misuses += 1
        assert(!trapsMisuse, "HTTP1ClientMachine: \(event) is not allowed now")
    }
}
