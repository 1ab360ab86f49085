// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// One caller's HTTP connection: drives its `HTTP1ServerMachine`, and a `Service` that answers the requests.
///
/// Output is sent once per turn of the loop, so that head and body of a small response leave together.
final class DownstreamConnection: WorkerConnection, ReadinessHandler {
    /// The interval of the checks whether a caller that has ended its side still exists.
    private static let presenceInterval = Duration.seconds(1)

    let stream: CallerStream
    let worker: Worker
    var machine: HTTP1ServerMachine
    /// The bytes of the present request's head.
    var head = ByteQueue()
    /// The service that answers the requests, and the plan that it was made for.
    var service: (any Service)?
    private var servicePlan: ListenerPlan?
    /// A local answer that waits for the end of the request's body.
    var readyAnswer: LocalAnswer?
    /// A local answer that is being made.
    var awaited: AwaitedAnswer?
    /// The upstream's connection, after both sides have switched to another protocol.
    var switched: UpstreamConnection?
    /// The access record of the present request, if a log wants one.
    var accessBuilder: AccessRecordBuilder?
    let timer: LazyTimer
    var isEnqueued = false

    init(_ stream: CallerStream) {
        self.stream = stream
        worker = stream.worker
        machine = HTTP1ServerMachine(
            limits: stream.caller.listener.headLimits, bodyPace: worker.limits.bodyPace)
        timer = LazyTimer(loop: worker.loop)
        timer.onExpiry = { [unowned self] in timeLimitPassed() }
        setTimeLimit()
        stream.begin(self)
    }

    var caller: AcceptedCaller { stream.caller }

    /// True if another request may be read after the present one.
    var mayStayOpen: Bool { caller.acceptor.isOpen && !worker.isDraining }

    private var waiting: HTTP1ServerMachine.Waiting {
        HTTP1ServerMachine.Waiting(
            isInputEmpty: stream.input.isEmpty, isOutputEmpty: stream.output.isEmpty,
            isOutputFull: stream.isOutputFull)
    }

    /// True if no further request is read because the caller has not taken the earlier answers.
    private var isBlocked: Bool { machine.awaitsHead && !stream.input.isEmpty && stream.isOutputFull }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        if events.contains(.refused) { worker.logUnwatchedCaller(of: caller.listener) }
        if events.isBroken, machine.endsWithBrokenSocket(isError: events.contains(.error)) { return close() }
        if events.isWritable { worker.enqueue(self) }
        guard events.isReadable || events.isBroken, !machine.isClosed else { return }
        if machine.isLingering {
            if !stream.discardInput() { close() }
        } else if stream.receive(upTo: machine.inputLimit) {
            worker.enqueue(self)
        } else {
            close()
        }
    }

    func turn() {
        isEnqueued = false
        if switched != nil { return becomeTunnel() }
        advance()
        let wasBlocked = isBlocked
        flush()
        // No other event would resume a request that waited for the output.
        if wasBlocked, !isBlocked { worker.enqueue(self) }
        if worker.isDraining { closeIfIdle() }
        if machine.isServed, stream.output.count < CallerStream.outputWindow / 2 { service?.resumeResponse() }
        guard !machine.isClosed else { return }
        stream.returnInput()
        setTimeLimit()
        if switched == nil { stream.watch(reads: machine.reads(behind: stream.input.count), self) }
    }

    private func setTimeLimit() {
        guard let limit = machine.takeTimeLimit() else { return }
        let loop = worker.loop
        switch limit {
        case .none: timer.disarm()
        case .firstByte: timer.arm(at: loop.now + worker.silentDelay)
        case .request: timer.arm(at: loop.now + worker.limits.headTime)
        case .body: timer.arm(at: loop.now + worker.limits.bodyTime)
        case .answer: timer.arm(at: loop.now + (awaited?.timeout ?? .zero))
        case .quiet: timer.arm(at: loop.now + worker.quietDelay)
        case .idle: timer.arm(at: loop.now + worker.idleDelay)
        case .drain: timer.arm(at: loop.now + worker.limits.drainGrace)
        case .lingering: timer.arm(at: loop.now + CallerStream.lingering)
        case .presence: timer.arm(at: loop.now + Self.presenceInterval)
        }
    }

    private func timeLimitPassed() {
        timeLimitPassed(isInputNew: isEnqueued)
        setTimeLimit()
    }

    private func timeLimitPassed(isInputNew: Bool) {
        switch machine.timeLimitPassed(waiting, isInputNew: isInputNew) {
        case .nothing: break
        case .readFirst:
            let wasMidHead = machine.isMidHead
            advance()
            if wasMidHead, machine.isMidHead { timeLimitPassed(isInputNew: false) }
        case .refuseHead:
            refuseHead(LocalReply(.badRequest, status: 408, detail: "The request's head did not arrive in time."))
        case .refuseBody:
            breakOff(LocalReply(.badRequest, status: 408, detail: "The request's body did not arrive in time."))
        case .releaseMemory: releaseMemory()
        case .makeAnswer: if let awaited { deliver(awaited) }
        case .writeAnswer: writeReadyAnswer()
        case .checkCaller: checkCaller()
        case .close: close()
        }
    }

    // MARK: Reading

    /// Processes the input so far.
    private func advance() {
        while takeStep() {}
        guard stream.hasEnded, !machine.isClosed else { return }
        switch machine.inputEnded(waiting) {
        case .nothing: break
        case .close: close()
        case .breakOff: breakOff(nil)
        case .checkCaller: checkCaller()
        }
    }

    /// Takes one step, and returns true if there may be more to do.
    private func takeStep() -> Bool {
        let isOutputFull = stream.isOutputFull
        let action = stream.input.withSpan {
            machine.read($0, isOutputFull: isOutputFull, wantsBody: service?.wantsBody ?? false)
        }
        switch action {
        case .wait:
            return false
        case .takeHead(let length):
            stream.input.withSpan { head.append($0.extracting(0..<length)) }
            stream.input.consume(length)
            begin()
            return !machine.isBodyComplete || !stream.input.isEmpty
        case .takeBody(let range, let consumed):
            stream.input.withSpan { service?.receiveBody($0.extracting(range.bounds)) }
            stream.input.consume(consumed)
        case .skip(let consumed):
            stream.input.consume(consumed)
        case .await(let consumed):
            stream.input.consume(consumed)
            return false
        case .endBody(let consumed):
            let trailers = machine.trailers
            if !trailers.isEmpty { take(trailers) }
            stream.input.consume(consumed)
            service?.receiveBodyEnd()
        case .writeAnswer(let consumed):
            stream.input.consume(consumed)
            writeReadyAnswer()
        case .refuseHead(let error):
            if beginsFrames { becomeSPOP() } else { refuseHead(LocalReply(error)) }
            return false
        case .refuseBody(let error):
            breakOff(LocalReply(error))
            return false
        }
        return true
    }

    /// Passes on the trailers, which the last step found in the input, except those that `Connection` names.
    private func take(_ trailers: [FieldLine]) {
        withRequest { request, head in
            stream.input.withSpan { bytes in
                for line in trailers
                where !request.nominates(trailer: bytes.extracting(line.name.bounds), in: head) {
                    service?.receiveTrailer(line, in: bytes)
                }
            }
        }
    }

    private func begin() {
        accessBuilder = AccessRecordBuilder.begin(caller, on: worker, hasHead: true)
        if let health = healthAnswer() { return deliver(health) }
        if let refusal = withRequest({ caller.identify($0, in: $1) }) {
            // A caller who is not known does not keep the connection.
            machine.endAfterRequest()
            return currentService().refuse(refusal)
        }
        if let own = ownAnswer() { return deliver(own) }
        currentService().begin()
    }

    private func healthAnswer() -> LocalAnswer? {
        let listener = caller.listener
        guard let health = listener.health else { return nil }
        return withRequest { health.answer(to: $0, in: $1, browsers: listener.browsers) }
    }

    private func ownAnswer() -> LocalAnswer? {
        withRequest { request, bytes in
            guard case .asterisk = request.target.form else { return nil }
            return Admission.ownAnswer(to: request, in: bytes, for: caller)
        }
    }

    /// Returns the service of the listener as of the last reload.
    private func currentService() -> any Service {
        let plan = caller.listener
        if let service, plan === servicePlan { return service }
        service?.close()
        let made: any Service =
            switch plan.service {
            case .proxy: Forwarding(self, worker: worker)
            case .authRequests: AuthRequests(self, worker: worker)
            case .local(let local):
                LocalAnswers(self, by: local, log: worker.log) { [runtime = worker.runtime] in runtime.nextID() }
            }
        (service, servicePlan) = (made, plan)
        return made
    }

    private func refuseHead(_ reply: LocalReply) { currentService().refuse(reply) }

    /// Releases the memory that only requests need. A busy connection keeps it; there may be thousands of idle ones.
    private func releaseMemory() {
        let held = stream.releaseMemory() + head.capacity
        head.removeAll(keepingCapacity: 0)
        machine.releaseMemory(limits: caller.listener.headLimits)
        service?.close()
        // The old service and plan would keep the upstreams of before a reload alive.
        (service, servicePlan) = (nil, nil)
        worker.released(held)
    }

    // MARK: Writing

    /// Sends as much as the socket accepts.
    func flush() {
        guard !machine.isClosed, switched == nil else { return }
        switch stream.send() {
        case .done:
            switch machine.outputIsWritten(isInputEmpty: stream.input.isEmpty) {
            case .nothing: break
            case .close: close()
            case .linger: stream.endOutput()
            }
        case .waits(let taken): stream.limitWriting(taken: taken) { [unowned self] in close(resetting: true) }
        case .broken: close()
        }
    }

    // MARK: Ends

    /// Cancels the exchange, because the request's body will not be complete. `refusal` is for a caller who has received no part
    /// of a response.
    private func breakOff(_ refusal: LocalReply?) {
        let action = machine.breakOff()
        service?.cancel(isAnswered: action == .finish)
        switch action {
        case .finish: requestEnded(isBroken: false)
        case .refuse:
            if let refusal { service?.refuse(refusal) } else { close(resetting: true) }
        case .reset: close(resetting: true)
        }
    }

    /// Checks whether a caller that has ended its side still exists, and closes the connection otherwise. TCP does not report a
    /// closed socket, so the kernel is asked: the upstream must not work for a caller who is gone. A Unix socket reports it.
    private func checkCaller() {
        guard !caller.isUnixSocket else { return }
        if worker.owners.hasVanished(caller.descriptor) { close() } else { machine.callerExists() }
    }

    func closeIfIdle() {
        guard !machine.isClosed else { return }
        if machine.drain(waiting, hasMore: stream.hasUnread) == .close { close() }
        setTimeLimit()
    }

    func turnAway() {
        switch machine.drainIsOver() {
        case .nothing: break
        case .refuse: breakOff(.cutOffByDrain)
        case .close: close()
        case .reset: reset()
        }
    }

    func vacancy(at now: LoopInstant) -> Vacancy? {
        guard let kind = machine.vacancy(waiting) else { return nil }
        let limits = worker.limits
        let delay =
            switch kind {
            case .lingering: LoopDelay(CallerStream.lingering)
            case .silent: worker.silentDelay
            case .idle: LoopDelay(machine.isQuiet ? limits.idleTime : min(limits.quietTime, limits.idleTime))
            }
        let vacancy = Vacancy(kind, limitedBy: delay, until: timer.deadline, at: now)
        return kind == .lingering || vacancy.age >= LoopDelay(limits.evictionAge).nanoseconds ? vacancy : nil
    }

    func closeForAnother() -> Bool {
        guard vacancy(at: worker.loop.now) != nil else { return false }
        // A request is in the socket already.
        if machine.awaitsHead, stream.hasUnread { return false }
        close()
        return true
    }

    func close() { close(resetting: false) }

    func close(resetting: Bool) {
        guard !machine.isClosed else { return }
        release()
        service?.close()
        service = nil
        switched?.close()
        stream.close(resetting: resetting)
        worker.connectionClosed(self, holding: stream.heldMemory + head.capacity)
    }

    /// Releases everything except the socket.
    private func release() {
        machine.close()
        timer.cancel()
        awaited = nil
        endAccess()
    }

    // MARK: Other protocols

    /// Hands the socket over to a tunnel, after both sides have switched to another protocol.
    private func becomeTunnel() {
        guard let switched else { return }
        self.switched = nil
        release()
        service?.becomeTunnel()
        service = nil
        worker.replace(by: Tunnel(stream, switched))
    }

    /// True if the input is not a request but HAProxy's protocol, at an auth-request listener. HAProxy's first frame is shorter
    /// than 16 MiB, so its length begins with a zero byte, which no request does.
    private var beginsFrames: Bool {
        caller.listener.answersAuthRequests && !machine.hasServed && stream.input.withSpan { $0[0] == 0 }
    }

    /// Hands the socket over to HAProxy's own protocol.
    private func becomeSPOP() {
        release()
        service = nil
        worker.replace(by: SPOPConnection(stream))
    }
}

/// A local answer that is still to be made. An object, so that a later one is not mistaken for it.
final class AwaitedAnswer {
    let timeout: Duration
    let make: @Sendable () -> LocalAnswer
    /// Runs `make` on another thread, if it may take long.
    let onThread: LaterAnswer.OnThread?
    /// True once `make` runs on another thread.
    var isBeingMade = false

    init(_ answer: LaterAnswer) {
        timeout = answer.timeout
        make = answer.answer
        onThread = answer.onThread
    }
}
