// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// The server's side of one HTTP/1.1 connection (RFC 9112): reading, answering, timeouts, end.
///
/// Value type without clock, socket or service. Each event has its own small enum of actions, which
/// `DownstreamConnection` carries out. An event that the state does not allow traps in debug builds, and changes
/// nothing in release builds.
struct HTTP1ServerMachine: ~Copyable {
    private enum State {
        /// A request head is awaited or incomplete.
        case head
        case request(HTTP1ServerRequest)
        /// The connection carries another protocol.
        case switched
        /// The last response is being written; then the connection ends.
        case closing(isBodyComplete: Bool)
        /// The response is written and the sending side ended; input is discarded, so that it can be read.
        case lingering
        case closed
    }

    private var state = State.head
    /// The parser; its head is that of the present request.
    private var parser: RequestHeadParser
    /// Not in the state, which is copied at each access.
    private var decoder = BodyDecoder(framing: .none)
    private var limits: HeadLimits
    private let bodyPace: Int
    /// The time limit set by the last event, until the driver takes it.
    private var newLimit: TimeLimit? = .firstByte
    private var inputHasEnded = false
    /// True if a request was answered.
    private(set) var hasServed = false
    /// True if the memory that only requests need was released.
    private(set) var isQuiet = false
    /// True if a drain waits for the first request, which will be the only one.
    private var isLastAwaited = false
    /// The number of events that the state did not allow.
    private(set) var misuses = 0
    private let trapsMisuse: Bool

    /// Makes a new connection. `bodyPace` is the number of body bytes after which its time limit restarts.
    init(limits: HeadLimits, bodyPace: Int, trapsMisuse: Bool = true) {
        self.limits = limits
        self.bodyPace = bodyPace
        self.trapsMisuse = trapsMisuse
        parser = RequestHeadParser(limits: limits)
    }

    // MARK: State

    /// The fields after the body, after `endBody`, as ranges into the input.
    var trailers: [FieldLine] { decoder.trailers }
    var isClosed: Bool { if case .closed = state { true } else { false } }
    var isLingering: Bool { if case .lingering = state { true } else { false } }
    /// True if the next request head is awaited or incomplete.
    var awaitsHead: Bool { if case .head = state { true } else { false } }
    /// True if a request head is incomplete.
    var isMidHead: Bool { awaitsHead && !parser.isIdle }
    /// True if a service answers the present request.
    var isServed: Bool { responder == .service }
    /// Lends the head of the present request. A copy would cost a new table for the next request.
    borrowing func withHead<Result, Failure: Error>(_ body: (RequestHead) throws(Failure) -> Result) throws(Failure)
        -> Result
    { try body(parser.head) }
    var isBodyComplete: Bool { if case .request(let request) = state { request.isBodyComplete } else { true } }
    private var responder: HTTP1ServerRequest.Responder? {
        if case .request(let request) = state { request.responder } else { nil }
    }

    /// The number of bytes that may be buffered. A head must fit completely, with a byte more than is allowed, so that a head
    /// that is too long is refused and not waited for.
    var inputLimit: Int {
        awaitsHead ? max(CallerStream.inputWindow, limits.head + 4096) : CallerStream.inputWindow
    }

    /// Returns true if the socket is read while `count` bytes are buffered.
    func reads(behind count: Int) -> Bool { !inputHasEnded && (isLingering || count < inputLimit) }

    /// Returns true if an error or hang-up of the socket ends the connection at once.
    func endsWithBrokenSocket(isError: Bool) -> Bool { isError || !awaitsHead }

    /// Returns the time limit set since the last call; `nil` if unchanged.
    mutating func takeTimeLimit() -> TimeLimit? {
        guard let limit = newLimit else { return nil }
        newLimit = nil
        return limit
    }

    // MARK: Reading

    /// Takes the next step in `bytes`, which are all buffered bytes. Nothing is read while `isOutputFull`: the caller has not
    /// taken the earlier answers.
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

    /// Ends reading: nothing later on this connection is read (RFC 9112 §11.2).
    private mutating func refuseRest() {
        parser.reset()
        state = .request(.unreadable)
    }

    // MARK: Answering

    /// Records that a service answers the present request. `isInputEmpty`: no part of the body has arrived.
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

    /// Ends the connection after the present request, whatever follows.
    mutating func endAfterRequest() {
        change("endAfterRequest") { request, _ in
            request.keepsAlive = false
            return true
        }
    }

    /// Records that a local answer is being made.
    mutating func awaitAnswer() {
        change("awaitAnswer") { request, limit in
            guard request.responder == .undecided else { return false }
            request.responder = .laterAnswer
            limit = .answer
            return true
        }
    }

    /// Records that a local answer is ready. It is written after the body, if the body is short enough to be discarded.
    mutating func answer() -> AnswerAction {
        var action: AnswerAction?
        let (remaining, awaitsAnswer) = (decoder.remaining, parser.head.awaitsAnswer)
        change("answer") { request, limit in
            action = request.answer(remaining: remaining, awaitsAnswer: awaitsAnswer, limit: &limit)
            return action != nil
        }
        return action ?? .drop
    }

    /// Returns true if the connection may be kept after a complete response written now; not if the body is unread.
    mutating func writesWholeResponse() -> Bool {
        var keepsAlive = false
        change("writesWholeResponse") { request, _ in
            if !request.isBodyComplete { request.keepsAlive = false }
            keepsAlive = request.keepsAlive
            return true
        }
        return keepsAlive
    }

    /// Returns true if the connection may be kept after a response with that status. A refusal before the body is complete ends
    /// it: the rest is not read, and the caller must learn that (RFC 9112 §9.6).
    func keepsAlive(after status: Int) -> Bool {
        guard case .request(let request) = state else { return false }
        return request.keepsAlive && (request.isBodyComplete || status < 300)
    }

    /// Records that the head of the service's response is written.
    mutating func responseBegan(keepsAlive: Bool, endsWithConnection: Bool) {
        change("responseBegan") { request, _ in
            guard request.responder == .service, case .none = request.response else { return false }
            request.keepsAlive = keepsAlive
            request.response = .begun(endsWithConnection: endsWithConnection)
            return true
        }
    }

    /// Records that the service's response is complete. The request's body may still be arriving.
    mutating func responseIsWhole() {
        change("responseIsWhole") { request, _ in
            guard request.responder == .service else { return false }
            request.response = .whole
            return true
        }
    }

    /// Records that more of the body is wanted. Returns true if a waiting caller must be sent a 100 now.
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

    /// Records that the upstream's own 100 is sent to the caller.
    mutating func continueIsPassedOn() {
        change("continueIsPassedOn") { request, _ in
            request.awaitsContinue = false
            return true
        }
    }

    /// Ends the present request. `mayStayOpen`: the listener takes further requests.
    mutating func finish(mayStayOpen: Bool) -> FinishAction {
        guard case .request(let request) = state else {
            misused("finish")
            return .close
        }
        hasServed = true
        parser.reset()
        guard mayStayOpen, request.keepsAlive, request.isBodyComplete else {
            state = .closing(isBodyComplete: request.isBodyComplete)
            // From here on, the write timeout applies.
            newLimit = TimeLimit.none
            return .close
        }
        state = .head
        isQuiet = false
        newLimit = .quiet
        return .readNext
    }

    /// Records that the upstream has switched to another protocol.
    mutating func switchProtocol() {
        guard case .request(let request) = state, request.responder == .service, case .none = request.response else {
            return misused("switchProtocol")
        }
        state = .switched
        newLimit = TimeLimit.none
    }

    // MARK: Ends

    /// Handles the end of the input, after all of it was read. A caller that waits for its response still gets it (RFC 9112 §9.6
    /// allows half-closed connections); one that broke off inside a request does not.
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

    /// Records that the caller still exists.
    mutating func callerExists() { newLimit = .presence }

    /// Cancels a request whose body will not be complete.
    mutating func breakOff() -> BreakOffAction {
        var action = BreakOffAction.reset
        change("breakOff") { request, _ in
            action = request.breakOff()
            return true
        }
        return action
    }

    /// Handles the end of the time limit. `isInputNew`: input has arrived in this very turn.
    mutating func timeLimitPassed(_ waiting: Waiting, isInputNew: Bool) -> TimeLimitAction {
        switch state {
        case .head where parser.isIdle && !waiting.isOutputEmpty, .closing where !waiting.isOutputEmpty:
            // The caller still has to read earlier responses, which has its own timeout.
            newLimit = .quiet
            return .nothing
        case .head where isInputNew && !waiting.isInputEmpty:
            // The input is read before the caller counts as late: the thread may not have run when it arrived.
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

    /// Releases the memory that only requests need. Heads are limited by `limits` from now on.
    mutating func releaseMemory(limits: HeadLimits) {
        guard awaitsHead, parser.isIdle else { return misused("releaseMemory") }
        self.limits = limits
        parser = RequestHeadParser(limits: limits)
    }

    /// Handles the end of the output. After the last response, input is discarded for a while: closing with unread
    /// input resets the connection, and the caller may lose the reply (RFC 9112 §9.6).
    mutating func outputIsWritten(isInputEmpty: Bool) -> WrittenAction {
        guard case .closing(let isBodyComplete) = state else { return .nothing }
        // Nothing more will arrive, or nothing that the caller sends could make a close reset the connection.
        guard !inputHasEnded, !isInputEmpty || !isBodyComplete else { return .close }
        state = .lingering
        newLimit = .lingering
        return .linger
    }

    /// Closes the connection for a drain, if no request is under way.
    ///
    /// A request that is in the socket already (`hasMore`) is served. So is the first request of a caller who has only just
    /// connected. A later request would be sent again by its caller, who knows that a persistent connection may end at any time
    /// (RFC 9112 §9.3.1), but the first would be lost, and a restart must not refuse anyone.
    mutating func drain(_ waiting: Waiting, hasMore: @autoclosure () -> Bool) -> DrainAction {
        guard awaitsHead, parser.isIdle, waiting.isInputEmpty, waiting.isOutputEmpty, !isLastAwaited, !hasMore()
        else { return .nothing }
        if hasServed || inputHasEnded { return .close }
        isLastAwaited = true
        newLimit = .drain
        return .nothing
    }

    func drainIsOver() -> DrainEndAction {
        switch state {
        case .request(let request): request.drainIsOver
        case .closing, .lingering: .nothing
        case .head, .switched, .closed: .close
        }
    }

    /// Returns the reason to close the connection for another caller, if there is one.
    func vacancy(_ waiting: Waiting) -> Vacancy.Kind? {
        switch state {
        case .lingering: .lingering
        case .head where parser.isIdle && waiting.isInputEmpty && waiting.isOutputEmpty && !inputHasEnded:
            hasServed ? .idle : .silent
        case .head, .request, .switched, .closing, .closed: nil
        }
    }

    /// Records that the connection is closed.
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
