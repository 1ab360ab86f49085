// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// A request whose head is read, until its response is written: a state of `HTTP1ServerMachine`.
struct HTTP1ServerRequest {
    typealias Machine = HTTP1ServerMachine

    /// The state of the response to the present request.
    enum Response {
        case none
        /// Its head is written. `endsWithConnection`: only the end of the connection ends its body.
        case begun(endsWithConnection: Bool)
        case whole
    }

    /// The side that answers the present request.
    enum Responder {
        /// Nobody yet: its head has just been read.
        case undecided
        /// The service, which takes the body as it comes.
        case service
        /// An answer of our own is being made, or was made and waits for the end of the body.
        case laterAnswer, readyAnswer
    }

    /// The longest body that is read over before a short answer is written, in bytes.
    private static let skippedAtMost: UInt64 = 64 * 1024

    var isBodyComplete: Bool
    /// True if the caller waits for 100 before it sends its body (RFC 9110 §10.1.1).
    var awaitsContinue = false
    /// True if the body is not read because nobody wants more of it for now.
    var isBodyHeld = false
    /// Bytes of the body that came since the time limit was set.
    var bodyArrived = 0
    var keepsAlive: Bool
    var response = Response.none
    var responder = Responder.undecided
    /// True if the caller has ended its side, and is looked for from time to time.
    var isWatched = false

    /// A request whose head is `head`.
    @inline(__always)
    init(_ head: borrowing RequestHead) {
        isBodyComplete = head.body.isEmpty
        // Behind CONNECT, which is refused, the bytes of the tunnel may follow already: they are no requests. Nor is it
        // certain that what follows a HEAD with a body is one (RFC 9110 §9.3.2).
        let isFollowed = head.method != .connect && (head.method != .head || head.body.isEmpty)
        keepsAlive = head.keepsAlive && isFollowed
    }

    private init(isBodyComplete: Bool, keepsAlive: Bool) {
        self.isBodyComplete = isBodyComplete
        self.keepsAlive = keepsAlive
    }

    /// Bytes that cannot be read as a request. Nothing later on its connection is read (RFC 9112 §11.2).
    static var unreadable: Self { Self(isBodyComplete: false, keepsAlive: false) }

    /// Takes the next step in the body. `pace`: the bytes that set its time limit anew.
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

    /// Sets the time limit of the body anew once enough of it has come: a caller that sends a byte now and then holds an
    /// exchange and a connection upstream.
    private mutating func bodyCame(_ count: Int, pace: Int, limit: inout Machine.TimeLimit?) {
        bodyArrived += count
        guard isBodyHeld || bodyArrived >= pace else { return }
        isBodyHeld = false
        bodyArrived = 0
        limit = .body
    }

    /// An answer of our own is there; `nil`: there is a response already. `remaining`: the bytes of the body still to come, where its
    /// framing tells. `awaitsAnswer`: the caller may hold them back until it is answered.
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

    /// The caller has ended its side.
    mutating func inputEnded(_ waiting: Machine.Waiting) -> Machine.InputEndAction {
        switch responder {
        case .service where isBodyComplete:
            // Further requests that it has sent are still answered.
            if waiting.isInputEmpty { keepsAlive = false }
        case .service:
            if case .whole = response { return .breakOff }
            // The upstream takes no more at the moment: the rest of the request may well lie here.
            guard isBodyHeld, !waiting.isInputEmpty else { return .close }
        case .laterAnswer where isBodyComplete:
            if waiting.isInputEmpty { keepsAlive = false }
            return .nothing
        case .laterAnswer, .readyAnswer, .undecided:
            return .close
        }
        guard !isWatched else { return .nothing }
        isWatched = true
        return .lookForCaller
    }

    /// The time that was set last is over.
    mutating func timeLimitPassed() -> Machine.TimeLimitAction {
        switch responder {
        case .laterAnswer: return .makeAnswer
        case .readyAnswer:
            // The caller gets its answer all the same; the rest of the body is not read.
            keepsAlive = false
            responder = .undecided
            return .writeAnswer
        case .service: return isBodyComplete ? .lookForCaller : .refuseBody
        case .undecided: return .close
        }
    }

    /// The body will not come to its end.
    mutating func breakOff() -> Machine.BreakOffAction {
        keepsAlive = false
        // Another answer takes its place.
        if responder == .readyAnswer { responder = .undecided }
        return switch response {
        case .whole: .finish
        case .none: .refuse
        case .begun: .reset
        }
    }

    /// The action at the end of a drain.
    var drainIsOver: Machine.DrainEndAction {
        guard responder == .service else { return .close }
        return switch response {
        case .none: .refuse
        // A plain end would pass for that of the body.
        case .begun(endsWithConnection: true): .reset
        case .begun, .whole: .close
        }
    }
}
