// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// A request from its head to the end of its response: a state of `HTTP1ServerMachine`.
struct HTTP1ServerRequest {
    typealias Machine = HTTP1ServerMachine

    /// The state of the response to the present request.
    enum Response {
        case none
        /// The head is written. `endsWithConnection`: the body ends with the connection.
        case begun(endsWithConnection: Bool)
        case whole
    }

    /// The side that answers the present request.
    enum Responder {
        /// Undecided, because the head has just been read.
        case undecided
        /// The service, which takes the body as it arrives.
        case service
        /// A local answer that is being made, or that waits for the end of the body.
        case laterAnswer, readyAnswer
    }

    /// The longest body that is discarded before a short answer is written, in bytes.
    private static let skippedAtMost: UInt64 = 64 * 1024

    var isBodyComplete: Bool
    /// True if the caller waits for a 100 before it sends its body (RFC 9110 §10.1.1).
    var awaitsContinue = false
    /// True if the body is not read because no more of it is wanted for now.
    var isBodyHeld = false
    /// The number of body bytes since the time limit was set.
    var bodyArrived = 0
    var keepsAlive: Bool
    var response = Response.none
    var responder = Responder.undecided
    /// True if the caller has ended its side, and its existence is checked regularly.
    var isWatched = false

    /// Makes the state of a request with that head.
    @inline(__always)
    init(_ head: borrowing RequestHead) {
        isBodyComplete = head.body.isEmpty
        // After CONNECT, which is refused, the bytes of the tunnel may follow: they are not requests. After a HEAD with a body,
        // the next bytes need not be a request (RFC 9110 §9.3.2).
        let isFollowed = head.method != .connect && (head.method != .head || head.body.isEmpty)
        keepsAlive = head.keepsAlive && isFollowed
    }

    private init(isBodyComplete: Bool, keepsAlive: Bool) {
        self.isBodyComplete = isBodyComplete
        self.keepsAlive = keepsAlive
    }

    /// A request that cannot be read. Nothing later on its connection is read (RFC 9112 §11.2).
    static var unreadable: Self { Self(isBodyComplete: false, keepsAlive: false) }

    /// Takes the next step in the body. After `pace` bytes its time limit restarts.
    mutating func read(
        _ bytes: Span<UInt8>, by decoder: inout BodyDecoder, wantsBody: Bool, pace: Int, limit: inout Machine.TimeLimit?
    ) -> Machine.ReadAction {
        let isServed = responder == .service
        if isServed, !wantsBody {
            // The caller cannot be late now.
            if !isBodyHeld { limit = Machine.TimeLimit.none }
            isBodyHeld = true
            return .wait
        }
        switch decoder.decode(bytes) {
        case .data(let range, let consumed):
            awaitsContinue = false
            guard isServed else { return .skip(consumed) }
            bodyCame(consumed, pace: pace, limit: &limit)
            return .takeBody(range, consumed: consumed)
        case .needMore(let consumed):
            if isServed, !awaitsContinue { bodyCame(consumed, pace: pace, limit: &limit) }
            return .await(consumed: consumed)
        case .end(let consumed):
            isBodyComplete = true
            if responder != .laterAnswer { limit = Machine.TimeLimit.none }
            if responder == .readyAnswer {
                responder = .undecided
                return .writeAnswer(consumed: consumed)
            }
            return isServed ? .endBody(consumed: consumed) : .skip(consumed)
        case .refused(let error):
            return .refuseBody(error)
        }
    }

    /// Restarts the time limit of the body after enough bytes. Otherwise a caller that sends a byte now and then would
    /// hold an exchange and a connection upstream.
    private mutating func bodyCame(_ count: Int, pace: Int, limit: inout Machine.TimeLimit?) {
        bodyArrived += count
        guard isBodyHeld || bodyArrived >= pace else { return }
        isBodyHeld = false
        bodyArrived = 0
        limit = .body
    }

    /// Records a local answer; `nil` if there is a response already. `remaining`: the number of body bytes still to
    /// come, if the framing states it. `awaitsAnswer`: the caller may send them only after an answer.
    mutating func answer(
        remaining: UInt64?, awaitsAnswer: Bool, limit: inout Machine.TimeLimit?
    ) -> Machine.AnswerAction? {
        guard responder != .readyAnswer, case .none = response else { return nil }
        let isShort = remaining.map { $0 <= Self.skippedAtMost } ?? false
        guard !isBodyComplete, keepsAlive, isShort, !awaitsAnswer else { return .write }
        responder = .readyAnswer
        limit = .body
        return .writeAfterBody
    }

    /// Handles the end of the caller's side.
    mutating func inputEnded(_ waiting: Machine.Waiting) -> Machine.InputEndAction {
        switch responder {
        case .service where isBodyComplete:
            // Further requests that were sent before the end are still answered.
            if waiting.isInputEmpty { keepsAlive = false }
        case .service:
            if case .whole = response { return .breakOff }
            // The upstream takes no more at the moment, so the rest of the request may be buffered here.
            guard isBodyHeld, !waiting.isInputEmpty else { return .close }
        case .laterAnswer where isBodyComplete:
            if waiting.isInputEmpty { keepsAlive = false }
            return .nothing
        case .laterAnswer, .readyAnswer, .undecided:
            return .close
        }
        guard !isWatched else { return .nothing }
        isWatched = true
        return .checkCaller
    }

    /// Handles the end of the time limit.
    mutating func timeLimitPassed() -> Machine.TimeLimitAction {
        switch responder {
        case .laterAnswer: return .makeAnswer
        case .readyAnswer:
            // The caller gets the answer, and the rest of the body is not read.
            keepsAlive = false
            responder = .undecided
            return .writeAnswer
        case .service: return isBodyComplete ? .checkCaller : .refuseBody
        case .undecided: return .close
        }
    }

    /// Cancels the request, because its body will not be complete.
    mutating func breakOff() -> Machine.BreakOffAction {
        keepsAlive = false
        // Another answer replaces the ready one.
        if responder == .readyAnswer { responder = .undecided }
        return switch response {
        case .whole: .finish
        case .none: .refuse
        case .begun: .reset
        }
    }

    var drainIsOver: Machine.DrainEndAction {
        guard responder == .service else { return .close }
        return switch response {
        case .none: .refuse
        // A plain close would look like the end of the body.
        case .begun(endsWithConnection: true): .reset
        case .begun, .whole: .close
        }
    }
}
