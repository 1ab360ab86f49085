// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The server's side of one HTTP/1.1 connection (RFC 9112): what is read next, what an event means, when the connection ends.
///
/// A value without clock, socket or service. Each event has its own small enum of actions, which `DownstreamConnection`
/// carries out. An event that the state does not allow traps in debug builds, and changes nothing in release builds.
struct HTTP1ServerMachine: ~Copyable {
    private enum State {
        /// A request head is awaited or half read.
        case head
        case request(HTTP1ServerRequest)
        /// The bytes that come are of another protocol.
        case switched
        /// The last response is being written; then the connection ends.
        case closing(isBodyComplete: Bool)
        /// Written and ended on our side; what still comes is read over, so that the caller gets to read our reply.
        case lingering
        case closed
    }

    private var state = State.head
    /// Its head is that of the present request.
    private var parser: RequestHeadParser
    /// Apart from the state, which is copied wherever it is looked at.
    private var decoder = BodyDecoder(framing: .none)
    private var limits: HeadLimits
    private let bodyPace: Int
    /// The time limit that the last event has set, until the driver takes it.
    private var newLimit: TimeLimit? = .firstByte
    private var inputHasEnded = false
    /// True if a request was answered.
    private(set) var hasServed = false
    /// True if the memory that only requests need was given back.
    private(set) var isQuiet = false
    /// True if a drain waits for the first request, which will be the only one.
    private var isLastAwaited = false
    /// Events that the state did not allow.
    private(set) var misuses = 0
    private let trapsMisuse: Bool

    /// A connection on which nothing has come. `bodyPace`: the bytes of a body that set its time limit anew.
    init(limits: HeadLimits, bodyPace: Int, trapsMisuse: Bool = true) {
        self.limits = limits
        self.bodyPace = bodyPace
        self.trapsMisuse = trapsMisuse
        parser = RequestHeadParser(limits: limits)
    }

    // MARK: State

    /// The fields behind the body, after `endBody`, as ranges into the input.
    var trailers: [FieldLine] { decoder.trailers }
    var isClosed: Bool { if case .closed = state { true } else { false } }
    var isLingering: Bool { if case .lingering = state { true } else { false } }
    /// True if the next request head is awaited or half read.
    var awaitsHead: Bool { if case .head = state { true } else { false } }
    /// True if a request head is half read.
    var isMidHead: Bool { awaitsHead && !parser.isIdle }
    /// True if a service answers the present request.
    var isServed: Bool { responder == .service }
    /// Lends the head of the present request: a copy would cost the memory of its table at the next request.
    borrowing func withHead<Result, Failure: Error>(_ body: (RequestHead) throws(Failure) -> Result) throws(Failure)
        -> Result
    { try body(parser.head) }
    var isBodyComplete: Bool { if case .request(let request) = state { request.isBodyComplete } else { true } }
    private var responder: HTTP1ServerRequest.Responder? {
        if case .request(let request) = state { request.responder } else { nil }
    }

    /// The bytes that may lie unread: a head must fit whole, and with a byte more than is allowed, so that one that is
    /// too long is refused and not waited for.
    var inputLimit: Int {
        awaitsHead ? max(CallerStream.inputWindow, limits.head + 4096) : CallerStream.inputWindow
    }

    /// Returns whether the socket is read while `count` bytes lie unread.
    func reads(behind count: Int) -> Bool { !inputHasEnded && (isLingering || count < inputLimit) }

    /// Returns whether an error or hang-up of the socket ends the connection at once.
    func endsWithBrokenSocket(isError: Bool) -> Bool { isError || !awaitsHead }

    /// The time limit that was set since the last call; `nil`: it stays as it is.
    mutating func takeTimeLimit() -> TimeLimit? {
        guard let limit = newLimit else { return nil }
        newLimit = nil
        return limit
    }

    // MARK: Reading

    /// Takes the next step in `bytes`, which are all that lie unread. Nothing more is read while `isOutputFull`: the
    /// caller has not taken the answers before.
    mutating func read(_ bytes: Span<UInt8>, isOutputFull: Bool, wantsBody: @autoclosure () -> Bool) -> ReadAction {
        switch state {
        case .head:
            guard !bytes.isEmpty, !isOutputFull else { return .wait }
            return readHead(bytes)
        case .request(var request):
            guard !request.isBodyComplete else { return .wait }
            state = .closed
            let action = request.read(
                bytes, by: &decoder, wantsBody: wantsBody(), pace: bodyPace, limit: &newLimit)
            state = .request(request)
            return action
        case .switched, .closing, .lingering, .closed:
            return .wait
        }
    }

    private mutating func readHead(_ bytes: Span<UInt8>) -> ReadAction {
        let wasIdle = parser.isIdle
        switch parser.parse(bytes) {
        case .incomplete:
            if wasIdle { newLimit = .request }
            return .wait
        case .refused(let error):
            refuseRest()
            return .refuseHead(error)
        case .complete(let length):
            decoder = BodyDecoder(framing: parser.head.body)
            state = .request(HTTP1ServerRequest(parser.head))
            return .takeHead(length: length)
        }
    }

    /// Nothing later on this connection is read (RFC 9112 §11.2).
    private mutating func refuseRest() {
        parser.reset()
        state = .request(.unreadable)
    }

    // MARK: Answering

    /// A service answers the present request. `isInputEmpty`: nothing of the body has come yet.
    mutating func accept(isInputEmpty: Bool) {
        let expectsContinue = parser.head.expectsContinue
        change("accept") { request, limit in
            guard request.responder == .undecided else { return false }
            request.responder = .service
            request.awaitsContinue = expectsContinue && isInputEmpty
            request.isBodyHeld = request.awaitsContinue
            limit = request.isBodyComplete || request.awaitsContinue ? TimeLimit.none : .body
            return true
        }
    }

    /// No request follows the present one, whatever comes.
    mutating func endAfterRequest() {
        change("endAfterRequest") { request, _ in
            request.keepsAlive = false
            return true
        }
    }

    /// An answer of our own is being made.
    mutating func awaitAnswer() {
        change("awaitAnswer") { request, limit in
            guard request.responder == .undecided else { return false }
            request.responder = .laterAnswer
            limit = .answer
            return true
        }
    }

    /// An answer of our own is there. It goes after the body, where that is short enough to be read over.
    mutating func answer() -> AnswerAction {
        var action: AnswerAction?
        let (remaining, awaitsAnswer) = (decoder.remaining, parser.head.awaitsAnswer)
        change("answer") { request, limit in
            action = request.answer(remaining: remaining, awaitsAnswer: awaitsAnswer, limit: &limit)
            return action != nil
        }
        return action ?? .drop
    }

    /// Returns whether the connection may be kept after a whole response written now: not where the body is not read.
    mutating func writesWholeResponse() -> Bool {
        var keepsAlive = false
        change("writesWholeResponse") { request, _ in
            if !request.isBodyComplete { request.keepsAlive = false }
            keepsAlive = request.keepsAlive
            return true
        }
        return keepsAlive
    }

    /// True if the connection may be kept after a response of that status. A refusal that comes before the body is complete ends it:
    /// nobody reads the rest, and the caller is to know (RFC 9112 §9.6).
    func keepsAlive(after status: Int) -> Bool {
        guard case .request(let request) = state else { return false }
        return request.keepsAlive && (request.isBodyComplete || status < 300)
    }

    /// The head of the service's response is written, and says whether the connection is kept.
    mutating func responseBegan(keepsAlive: Bool, endsWithConnection: Bool) {
        change("responseBegan") { request, _ in
            guard request.responder == .service, case .none = request.response else { return false }
            request.keepsAlive = keepsAlive
            request.response = .begun(endsWithConnection: endsWithConnection)
            return true
        }
    }

    /// The service's response is written whole, while the body of the request may still come.
    mutating func responseIsWhole() {
        change("responseIsWhole") { request, _ in
            guard request.responder == .service else { return false }
            request.response = .whole
            return true
        }
    }

    /// More of the body is wanted. Returns whether the caller waits for a 100 that is to be sent now.
    mutating func bodyIsWanted() -> Bool {
        var isDue = false
        change("bodyIsWanted") { request, _ in
            guard request.responder == .service else { return false }
            if request.awaitsContinue, case .none = request.response { isDue = true }
            request.awaitsContinue = false
            return true
        }
        return isDue
    }

    /// The upstream's own 100 goes to the caller.
    mutating func continueIsPassedOn() {
        change("continueIsPassedOn") { request, _ in
            request.awaitsContinue = false
            return true
        }
    }

    /// The request is over: its response is written as far as it will be. `mayStayOpen`: the listener takes further requests.
    mutating func finish(mayStayOpen: Bool) -> FinishAction {
        guard case .request(let request) = state else {
            misused("finish")
            return .close
        }
        hasServed = true
        parser.reset()
        guard mayStayOpen, request.keepsAlive, request.isBodyComplete else {
            state = .closing(isBodyComplete: request.isBodyComplete)
            // The rest is bound by the time for writing.
            newLimit = TimeLimit.none
            return .close
        }
        state = .head
        isQuiet = false
        newLimit = .quiet
        return .readNext
    }

    /// The upstream has switched to another protocol.
    mutating func switchProtocol() {
        guard case .request(let request) = state, request.responder == .service, case .none = request.response else {
            return misused("switchProtocol")
        }
        state = .switched
        newLimit = TimeLimit.none
    }

    // MARK: Ends

    /// The caller has ended its side, and all that can be read is. One that waits for its response still gets it
    /// (RFC 9112 §9.6 knows half-closed connections); one that broke off in the middle of a request does not.
    mutating func inputEnded(_ waiting: Waiting) -> InputEndAction {
        inputHasEnded = true
        switch state {
        case .head:
            if !waiting.isInputEmpty, waiting.isOutputFull { return .nothing }
            if waiting.isOutputEmpty { return .close }
            state = .closing(isBodyComplete: true)
            return .nothing
        case .request(var request):
            let action = request.inputEnded(waiting)
            state = .request(request)
            return action
        case .switched, .closing, .lingering, .closed:
            return .nothing
        }
    }

    /// A caller that was looked for is still there.
    mutating func callerIsThere() { newLimit = .presence }

    /// The request's body will not come to its end.
    mutating func breakOff() -> BreakOffAction {
        var action = BreakOffAction.reset
        change("breakOff") { request, _ in
            action = request.breakOff()
            return true
        }
        return action
    }

    /// The time that was set last is over. `isInputNew`: something has come in this very turn.
    mutating func timeLimitPassed(_ waiting: Waiting, isInputNew: Bool) -> TimeLimitAction {
        switch state {
        case .head where parser.isIdle && !waiting.isOutputEmpty, .closing where !waiting.isOutputEmpty:
            // The caller still takes the answers before; that has a limit of its own.
            newLimit = .quiet
            return .nothing
        case .head where isInputNew && !waiting.isInputEmpty:
            // It is read before the caller is called late: the thread may have had no processor when it came.
            return .readFirst
        case .head where !parser.isIdle || !waiting.isInputEmpty:
            refuseRest()
            return .refuseHead
        case .head where hasServed && !isQuiet:
            isQuiet = true
            newLimit = .idle
            return .releaseMemory
        case .request(var request):
            let action = request.timeLimitPassed()
            state = .request(request)
            return action
        case .head, .switched, .closing, .lingering, .closed:
            return .close
        }
    }

    /// The memory that only requests need is given back; heads are held to `limits` from now on.
    mutating func releaseMemory(limits: HeadLimits) {
        guard awaitsHead, parser.isIdle else { return misused("releaseMemory") }
        self.limits = limits
        parser = RequestHeadParser(limits: limits)
    }

    /// All output has gone. What still comes after the last response is read over for a while: a close with unread input resets
    /// the connection, and the caller may lose our reply (RFC 9112 §9.6).
    mutating func outputIsWritten(isInputEmpty: Bool) -> WrittenAction {
        guard case .closing(let isBodyComplete) = state else { return .nothing }
        // Nothing is left to come, or nothing that the caller sends could make a close reset the connection.
        guard !inputHasEnded, !isInputEmpty || !isBodyComplete else { return .close }
        state = .lingering
        newLimit = .lingering
        return .linger
    }

    /// A drain closes the connection if no request is under way.
    ///
    /// A request that lies in the socket already (`hasMore`) is served. So is the first one of a caller who has only just
    /// connected: unlike a later one, whose caller knows that a kept connection may end at any time and sends it again
    /// (RFC 9112 §9.3.1), it would be lost, and a restart is to refuse nobody.
    mutating func drain(_ waiting: Waiting, hasMore: @autoclosure () -> Bool) -> DrainAction {
        guard awaitsHead, parser.isIdle, waiting.isInputEmpty, waiting.isOutputEmpty, !isLastAwaited, !hasMore()
        else { return .nothing }
        if hasServed || inputHasEnded { return .close }
        isLastAwaited = true
        newLimit = .drain
        return .nothing
    }

    /// The time of the drain is over.
    func drainIsOver() -> DrainEndAction {
        switch state {
        case .request(let request): request.drainIsOver
        case .closing, .lingering: .nothing
        case .head, .switched, .closed: .close
        }
    }

    /// The reason to close the connection for another caller, if there is one.
    func vacancy(_ waiting: Waiting) -> Vacancy.Kind? {
        switch state {
        case .lingering: .lingering
        case .head where parser.isIdle && waiting.isInputEmpty && waiting.isOutputEmpty && !inputHasEnded:
            hasServed ? .idle : .silent
        case .head, .request, .switched, .closing, .closed: nil
        }
    }

    /// The connection is closed.
    mutating func close() {
        state = .closed
        newLimit = nil
    }

    // MARK: Helpers

    /// Changes the present request, if there is one and `body` allows the event.
    private mutating func change(
        _ event: StaticString, _ body: (inout HTTP1ServerRequest, inout TimeLimit?) -> Bool
    ) {
        guard case .request(var request) = state else { return misused(event) }
        state = .closed
        let isAllowed = body(&request, &newLimit)
        state = .request(request)
        if !isAllowed { misused(event) }
    }

    private mutating func misused(_ event: StaticString) {
        misuses += 1
        assert(!trapsMisuse, "HTTP1ServerMachine: \(event) is not allowed now")
    }
}
