// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// One caller's HTTP connection: carries out what its `HTTP1ServerMachine` decides, and has a `Service` answer the requests.
///
/// Output is written once per turn of the loop, so that head and body of a small response leave together.
final class DownstreamConnection: WorkerConnection, ReadinessHandler {
    /// Time after which it is looked again whether a caller that has ended its side is still there.
    private static let presenceInterval = Duration.seconds(1)

    let stream: CallerStream
    let worker: Worker
    var machine: HTTP1ServerMachine
    /// The head of the present request, as it came.
    var head = ByteQueue()
    /// The service that answers the requests, and the plan that it was made for.
    var service: (any Service)?
    private var servicePlan: ListenerPlan?
    /// The answer of our own that waits for the end of the request's body.
    var readyAnswer: LocalAnswer?
    /// The answer of our own that is being made.
    var awaited: AwaitedAnswer?
    /// The upstream's connection, once both sides have switched to another protocol.
    var switched: UpstreamConnection?
    /// The notes on the present request for the access log, if there is one.
    var accessNote: AccessNote?
    let timer: LazyTimer
    var isNoted = false

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

    /// True if a further request is not read because the caller has not taken the answers before it.
    private var isBlocked: Bool { machine.awaitsHead && !stream.input.isEmpty && stream.isOutputFull }

    // MARK: Events

    func ready(_ fd: Int32, _ events: Readiness) {
        if events.isBroken, machine.endsWithBrokenSocket(isError: events.contains(.error)) { return close() }
        if events.isWritable { worker.note(self) }
        guard events.isReadable || events.isBroken, !machine.isClosed else { return }
        if machine.isLingering {
            if !stream.discardInput() { close() }
        } else if stream.receive(upTo: machine.inputLimit) {
            worker.note(self)
        } else {
            close()
        }
    }

    func turn() {
        isNoted = false
        if switched != nil { return becomeTunnel() }
        advance()
        let wasBlocked = isBlocked
        flush()
        // Nobody else would come back to a request that waited for the output to go.
        if wasBlocked, !isBlocked { worker.note(self) }
        if worker.isDraining { closeIfIdle() }
        if machine.isServed, stream.output.count < CallerStream.outputWindow / 2 { service?.resumeResponse() }
        guard !machine.isClosed else { return }
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
        case .answer: timer.arm(at: loop.now + (awaited?.patience ?? .zero))
        case .quiet: timer.arm(at: loop.now + worker.quietDelay)
        case .idle: timer.arm(at: loop.now + worker.idleDelay)
        case .drain: timer.arm(at: loop.now + worker.limits.drainGrace)
        case .lingering: timer.arm(at: loop.now + CallerStream.lingering)
        case .presence: timer.arm(at: loop.now + Self.presenceInterval)
        }
    }

    private func timeLimitPassed() {
        timeLimitPassed(isInputNew: isNoted)
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
            refuseHead(LocalReply(.badRequest, status: 408, detail: "The request's head did not come in time."))
        case .refuseBody:
            breakOff(LocalReply(.badRequest, status: 408, detail: "The request's body did not come in time."))
        case .releaseMemory: releaseMemory()
        case .makeAnswer: if let awaited { deliver(awaited) }
        case .writeAnswer: writeReadyAnswer()
        case .lookForCaller: lookForCaller()
        case .close: close()
        }
    }

    // MARK: Reading

    /// Goes on with what has come in.
    private func advance() {
        while takeStep() {}
        guard stream.hasEnded, !machine.isClosed else { return }
        switch machine.inputEnded(waiting) {
        case .nothing: break
        case .close: close()
        case .breakOff: breakOff(nil)
        case .lookForCaller: lookForCaller()
        }
    }

    /// Returns whether there may be more to do.
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

    /// Hands over the fields behind the body, which the last step found in the input. Those go no further that `Connection` names.
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
        accessNote = AccessNote.begin(caller, on: worker, hasHead: true)
        if let own = ownAnswer() { return deliver(own) }
        currentService().begin()
    }

    private func ownAnswer() -> LocalAnswer? {
        withRequest { request, bytes in
            guard case .asterisk = request.target.form else { return nil }
            return Admission.ownAnswer(to: request, in: bytes, for: caller)
        }
    }

    /// The service of the listener as of the last reload.
    private func currentService() -> any Service {
        let plan = caller.listener
        if let service, plan === servicePlan { return service }
        service?.close()
        let made: any Service =
            switch plan.service {
            case .proxy: Forwarding(self, worker: worker)
            case .authority: AuthRequests(self, worker: worker)
            case .local(let local):
                LocalAnswers(self, by: local, log: worker.log) { [runtime = worker.runtime] in runtime.nextID() }
            }
        (service, servicePlan) = (made, plan)
        return made
    }

    private func refuseHead(_ reply: LocalReply) { currentService().refuse(reply) }

    /// Gives back what a connection needs for a request only. A busy one keeps it: this is for those that have had nothing to
    /// do for a while, of which there may be thousands.
    private func releaseMemory() {
        let held = stream.releaseMemory() + head.capacity
        head.removeAll(keepingCapacity: 0)
        machine.releaseMemory(limits: caller.listener.headLimits)
        service?.close()
        // After a reload they would keep the old upstreams alive.
        (service, servicePlan) = (nil, nil)
        worker.gaveBack(held)
    }

    // MARK: Writing

    /// Writes what the socket takes.
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

    /// The request's body will not come to its end: the exchange is given up. `refusal` is for a caller who has got nothing of
    /// a response yet.
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

    /// The caller has ended its side while its response is awaited. It may have closed its socket, too, and TCP does not tell:
    /// that is asked of the kernel, so that the upstream does not work for nobody. A Unix socket tells by itself.
    private func lookForCaller() {
        guard !caller.isUnixSocket else { return }
        if worker.owners.hasVanished(caller.descriptor) { close() } else { machine.callerIsThere() }
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
        // A request lies in the socket already.
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
        worker.connectionClosed(self)
    }

    /// Ends everything but the socket.
    private func release() {
        machine.close()
        timer.cancel()
        awaited = nil
        endAccess()
    }

    // MARK: Other protocols

    /// Both sides have switched to another protocol: a tunnel has the socket from now on.
    private func becomeTunnel() {
        guard let switched else { return }
        self.switched = nil
        release()
        service?.becomeTunnel()
        service = nil
        worker.replace(by: Tunnel(stream, switched))
    }

    /// True if what is no request is HAProxy's, which asks an authority. Its first frame is shorter than 16 MiB, so the length
    /// begins with a zero; for a request that is refused at once.
    private var beginsFrames: Bool {
        caller.listener.isAuthority && !machine.hasServed && stream.input.withSpan { $0[0] == 0 }
    }

    /// HAProxy speaks its own protocol on the socket.
    private func becomeSPOP() {
        release()
        service = nil
        worker.replace(by: SPOPConnection(stream))
    }
}

/// An answer of our own that is still to be made; an object, so that a later one is not taken for it.
final class AwaitedAnswer {
    let patience: Duration
    let make: @Sendable () -> LocalAnswer

    init(_ answer: LaterAnswer) {
        patience = answer.patience
        make = answer.answer
    }
}
