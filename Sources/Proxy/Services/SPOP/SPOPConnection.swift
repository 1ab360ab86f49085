// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

/// A connection of HAProxy to an auth-request listener in its own protocol (SPOP 2.0, SPOE.txt of HAProxy). Each frame is about
/// one request, and the answer sets variables of HAProxy. A frame is answered before the next one is read.
final class SPOPConnection: WorkerConnection, ReadinessHandler {
    private enum Phase {
        /// A frame is awaited or incomplete.
        case frame
        /// An exchange runs.
        case exchange
        /// The last frame is being written; then the connection ends.
        case closing
        /// The sending side has ended; input is discarded.
        case lingering
        case closed
    }

    private let stream: CallerStream
    private let worker: Worker
    private let timer: LazyTimer
    private var phase = Phase.frame
    private var run: UpstreamRequest
    /// The head of the request in question.
    private var head = ByteQueue()
    private var parser: RequestHeadParser
    private var writer = SPOPWriter()
    /// The largest frame that both peers accept, in bytes; `nil` before the hello.
    private var frameLimit: Int?
    /// The frame that is being answered.
    private var frame: (stream: UInt64, number: UInt64) = (0, 0)
    /// True if a frame is incomplete.
    private var isMidFrame = false
    private var hasServed = false
    /// True if memory that only a request needs was released.
    private var isQuiet = false
    /// True if a drain waits for the first request, which will be the only one.
    private var isLastAwaited = false
    private var accessBuilder: AccessRecordBuilder?
    var isEnqueued = false

    /// Takes over a caller's socket and the bytes received on it.
    init(_ stream: CallerStream) {
        self.stream = stream
        worker = stream.worker
        parser = RequestHeadParser(limits: stream.caller.listener.headLimits)
        run = UpstreamRequest(caller: stream.caller, worker: worker)
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in timeLimitPassed() }
        stream.begin(self)
    }

    var caller: AcceptedCaller { stream.caller }
    /// True if the connection may stay open. After a reload, the address may serve something else.
    private var staysOpen: Bool { caller.acceptor.isOpen && !worker.isDraining && caller.listener.answersAuthRequests }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        if events.contains(.refused) { worker.logUnwatchedCaller(of: caller.listener) }
        if events.isBroken, events.contains(.error) || phase != .frame { return close() }
        if events.isWritable { worker.enqueue(self) }
        guard events.isReadable || events.isBroken, phase != .closed else { return }
        if phase == .lingering {
            if !stream.discardInput() { close() }
        } else if stream.receive(upTo: CallerStream.inputWindow) {
            worker.enqueue(self)
        } else {
            close()
        }
    }

    func turn() {
        isEnqueued = false
        while phase == .frame, readFrame() {}
        if stream.hasEnded { inputEnded() }
        let wasBlocked = isBlocked
        flush()
        if wasBlocked, !isBlocked { worker.enqueue(self) }
        if worker.isDraining { closeIfIdle() }
        guard phase != .closed else { return }
        stream.returnInput()
        let reads =
            !stream.hasEnded && (phase == .lingering || stream.input.count < CallerStream.inputWindow)
        stream.watch(reads: reads, self)
    }

    /// True if no further frame is read because HAProxy has not taken the earlier answers.
    private var isBlocked: Bool { phase == .frame && !stream.input.isEmpty && stream.isOutputFull }

    /// Handles the end of the input. HAProxy ends both sides at once.
    private func inputEnded() {
        switch phase {
        case .frame where isBlocked: break
        case .frame: if stream.output.isEmpty { close() } else { phase = .closing }
        case .exchange: close()
        case .closing, .lingering, .closed: break
        }
    }

    private func timeLimitPassed() {
        switch phase {
        case .frame where !stream.output.isEmpty, .closing where !stream.output.isEmpty:
            // HAProxy still has to read earlier answers, which has its own timeout.
            timer.arm(at: worker.loop.now + worker.quietDelay)
        case .frame where isMidFrame || isQuiet || !hasServed: disconnect(isMidFrame ? .timeout : .none)
        case .frame:
            isQuiet = true
            let held = stream.releaseMemory() + head.capacity
            head.removeAll(keepingCapacity: 0)
            parser = RequestHeadParser(limits: caller.listener.headLimits)
            writer.releaseMemory()
            run.close()
            // The old value would keep the upstream of before a reload alive.
            run = UpstreamRequest(caller: caller, worker: worker)
            worker.released(held)
            timer.arm(at: worker.loop.now + worker.idleDelay)
        case .exchange: break
        case .closing, .lingering, .closed: close()
        }
    }

    // MARK: Frames

    /// Reads one frame, if complete. Returns true if there may be more to do.
    private func readFrame() -> Bool {
        guard !stream.input.isEmpty, !stream.isOutputFull else { return false }
        do throws(SPOPFault) {
            let limit = frameLimit ?? SPOPFrame.largest
            let frame = try stream.input.withSpan { (bytes) throws(SPOPFault) in
                try SPOPFrame.read(bytes, limit: limit)
            }
            guard let frame else {
                if !isMidFrame { timer.arm(at: worker.loop.now + worker.limits.headTime) }
                isMidFrame = true
                return false
            }
            isMidFrame = false
            try take(frame)
        } catch {
            disconnect(error)
        }
        return phase == .frame
    }

    private func take(_ frame: SPOPFrame) throws(SPOPFault) {
        switch frame.kind {
        case .hello where frameLimit == nil:
            let hello = try stream.input.withSpan { (bytes) throws(SPOPFault) in
                try SPOPHello(frame.payload, in: bytes)
            }
            stream.input.consume(frame.length)
            frameLimit = hello.frameLimit
            writer.hello(frameLimit: hello.frameLimit, to: &stream.output)
            if hello.isHealthCheck { phase = .closing }
            timer.arm(at: worker.loop.now + worker.limits.idleTime)
        case .notify where frameLimit != nil:
            self.frame = (frame.stream, frame.number)
            let asked = try stream.input.withSpan { (bytes) throws(SPOPFault) in
                try SPOPNotification.read(frame.payload, in: bytes).map { $0.writeHead(in: bytes, to: &head) }
            }
            stream.input.consume(frame.length)
            timer.disarm()
            begin(asked)
        case .disconnect:
            stream.input.consume(frame.length)
            disconnect(.none)
        // A second hello, or a request before the hello.
        case .hello, .notify: throw .frameInvalid
        case .unknown: stream.input.consume(frame.length)
        }
        worker.enqueue(self)
    }

    // MARK: Questions

    /// Begins the request in question, whose head is complete.
    private func begin(_ asked: Result<Void, SPOPNotification.Fault>) {
        phase = .exchange
        guard prepare(asked) else { return }
        run.exchange?.start()
        run.tally.handedOver(by: worker.loop)
    }

    /// Prepares the exchange, and returns false if the request was answered. Separate from the start, as in `Forwarding`.
    private func prepare(_ asked: Result<Void, SPOPNotification.Fault>) -> Bool {
        let name = caller.listener.name
        if case .failure(let fault) = asked {
            refuse(LocalReply(fault, listener: name))
            return false
        }
        switch head.withSpan({ parser.parse($0) }) {
        case .complete(head.count) where caller.listener.answersAuthRequests: break
        case .refused(let error):
            refuse(LocalReply(error))
            return false
        case .complete, .incomplete:
            refuse(LocalReply(.argumentInvalid, listener: name))
            return false
        }
        accessBuilder = AccessRecordBuilder.begin(caller, on: worker, hasHead: true)
        if let refusal = Admission.refusal(ofAskingBy: caller) {
            refuse(refusal)
            return false
        }
        let original = parser.head.withoutBody
        let refusal: UpstreamRequest.Refusal? = head.withSpan { bytes in
            do throws(UpstreamRequest.Refusal) {
                try run.admit(authRequest: original, in: bytes)
                run.begin(authRequest: original, in: bytes, for: self)
                return nil
            } catch {
                return error
            }
        }
        guard let refusal else { return true }
        refuse(refusal.reply, of: refusal.upstream)
        return false
    }

    /// Denies the request with a reply.
    private func refuse(_ reply: LocalReply, of upstream: String? = nil) {
        write(recorded(reply, of: upstream))
        accessBuilder?.status = reply.status
        requestEnded()
    }

    private func recorded(_ reply: LocalReply, of upstream: String?) -> LocalReply {
        let id = run.id
        if accessBuilder == nil { accessBuilder = AccessRecordBuilder.begin(caller, on: worker, hasHead: false) }
        accessBuilder?.take(reply, id: id, upstream: upstream)
        return run.recorded(reply, of: upstream, id: id)
    }

    private func write(_ reply: LocalReply) {
        writer.beginAcknowledgement(stream: frame.stream, number: frame.number)
        writer.write(reply, within: frameLimit ?? 0)
        endAcknowledgement()
    }

    private func endAcknowledgement() {
        writer.end(to: &stream.output)
        if !staysOpen { writer.disconnect(.none, to: &stream.output) }
        worker.enqueue(self)
    }

    /// Ends the request in question, which is answered.
    private func requestEnded() {
        accessBuilder?.isWhole = !run.tally.isBroken
        endAccess()
        run.release()
        hasServed = true
        isQuiet = false
        head.removeAll(keepingCapacity: 16_384)
        parser.reset()
        if staysOpen {
            phase = .frame
            timer.arm(at: worker.loop.now + worker.quietDelay)
        } else {
            phase = .closing
            // From here on, the write timeout applies.
            timer.disarm()
        }
        worker.enqueue(self)
    }

    private func endAccess() {
        guard let builder = accessBuilder else { return }
        accessBuilder = nil
        builder.write(for: caller, on: worker, exchange: run.running) { describe in
            head.withSpan { describe(parser.head, $0) }
        }
    }

    // MARK: Ends

    /// Ends the connection with a reason.
    private func disconnect(_ fault: SPOPFault) {
        writer.disconnect(fault, to: &stream.output)
        phase = .closing
        timer.disarm()
        worker.enqueue(self)
    }

    private func flush() {
        guard phase != .closed else { return }
        switch stream.send() {
        case .done where phase == .closing:
            guard !stream.hasEnded, !stream.input.isEmpty else { return close() }
            stream.endOutput()
            phase = .lingering
            timer.arm(at: worker.loop.now + CallerStream.lingering)
        case .done: break
        case .waits(let taken): stream.limitWriting(taken: taken) { [unowned self] in close(resetting: true) }
        case .broken: close()
        }
    }

    func closeIfIdle() {
        guard phase == .frame, stream.input.isEmpty, stream.output.isEmpty, !isLastAwaited, !stream.hasUnread
        else { return }
        if hasServed || stream.hasEnded { return disconnect(.none) }
        isLastAwaited = true
        timer.arm(at: worker.loop.now + worker.limits.drainGrace)
    }

    func turnAway() {
        switch phase {
        case .exchange:
            run.exchange?.cancel()
            refuse(.cutOffByDrain)
        case .closing, .lingering: break
        case .frame, .closed: close()
        }
    }

    func vacancy(at now: LoopInstant) -> Vacancy? {
        guard phase == .lingering else { return nil }
        return Vacancy(.lingering, limitedBy: LoopDelay(CallerStream.lingering), until: timer.deadline, at: now)
    }

    func closeForAnother() -> Bool {
        guard phase == .lingering else { return false }
        close()
        return true
    }

    func close() { close(resetting: false) }

    private func close(resetting: Bool) {
        guard phase != .closed else { return }
        phase = .closed
        timer.cancel()
        endAccess()
        run.close()
        stream.close(resetting: resetting)
        worker.connectionClosed(self, holding: stream.heldMemory + head.capacity)
    }
}

extension SPOPConnection: AuthRequestCaller {
    var identity: CallerIdentity? { caller.identity }

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        head.withSpan { bytes in
            run.writeFields(of: parser.head, in: bytes, into: fields, overriddenBy: sessions, cookies: cookies)
        }
    }

    /// Allows the request, with the fields of `answer`.
    func exchangeAuthorizes(_ answer: AuthRequestAnswer) {
        run.tally.status = 200
        accessBuilder?.status = 200
        writer.beginAcknowledgement(stream: frame.stream, number: frame.number)
        writer.variable("status", number: 200)
        answer.forEachField { writer.variable("field_", $0, text: $1) }
        if let cookies = head.withSpan({ bytes in answer.cookies.flatMap { $0.field(with: parser.head, in: bytes) } }) {
            if cookies.isEmpty {
                writer.variable(true: "remove_cookie")
            } else {
                writer.variable("field_cookie", text: cookies.span)
            }
        }
        let limit = frameLimit ?? 0
        guard writer.count <= limit else {
            let reply = LocalReply(
                .loginFailed,
                detail: """
                    The fields of the sessions take \(writer.count) bytes, but HAProxy accepts frames of at most \(limit). \
                    Raise tune.bufsize in HAProxy.
                    """)
            accessBuilder?.status = reply.status
            return write(recorded(reply, of: run.upstream?.plan.name))
        }
        endAcknowledgement()
    }

    // No request in question has a body.
    func exchangeWantsBody() {}

    func exchangeEnded() {
        run.tally.isWhole = true
        requestEnded()
    }

    func exchangeFailed(_ error: ExchangeError) { refuse(run.failed(error)) }

    func exchangeBroke(_ error: ExchangeError) {
        run.tally.isBroken = true
        _ = run.failed(error)
        requestEnded()
    }
}
