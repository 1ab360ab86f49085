// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

// The connection as its service uses it.
extension DownstreamConnection: ServedConnection {
    func withRequest<Result, Failure: Error>(
        _ body: (_ request: RequestHead, _ bytes: Span<UInt8>) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try head.withSpan { (bytes) throws(Failure) in
            try machine.withHead { (request) throws(Failure) in try body(request, bytes) }
        }
    }

    // MARK: Answers of our own

    func deliver(_ answer: LocalAnswer) {
        switch machine.answer() {
        case .write: write(answer)
        case .writeAfterBody:
            readyAnswer = answer
            worker.enqueue(self)
        case .drop: break
        }
    }

    /// Writes the answer that waited for the end of the request's body.
    func writeReadyAnswer() {
        guard let answer = readyAnswer else { return }
        readyAnswer = nil
        write(answer)
    }

    private func write(_ answer: LocalAnswer) {
        let (isHead, version) = machine.withHead { ($0.method == .head, $0.version) }
        let keepsAlive = writesWholeResponse()
        answer.write(
            isHead: isHead, version: version, date: worker.date(), keepsAlive: keepsAlive, to: &stream.output)
        accessBuilder?.status = answer.status
        accessBuilder?.bytes = isHead ? 0 : answer.body.count
        requestEnded(isBroken: false)
    }

    func deliver(_ answer: LaterAnswer) {
        let awaited = AwaitedAnswer(answer)
        self.awaited = awaited
        machine.awaitAnswer()
        let bound = LoopBound((connection: self, awaited: awaited), to: worker.loop)
        answer.begin { [loop = worker.loop] in
            loop.execute { bound.value.connection.deliver(bound.value.awaited) }
        }
    }

    /// Makes and delivers an answer whose data is there or has timed out; does nothing if that was done before.
    func deliver(_ awaited: AwaitedAnswer) {
        guard self.awaited === awaited, !awaited.isBeingMade else { return }
        guard let onThread = awaited.onThread else { return deliver(awaited, awaited.make()) }
        awaited.isBeingMade = true
        let bound = LoopBound((connection: self, awaited: awaited), to: worker.loop)
        onThread { [loop = worker.loop, make = awaited.make] in
            let answer = make()
            loop.execute { bound.value.connection.deliver(bound.value.awaited, answer) }
        }
    }

    private func deliver(_ awaited: AwaitedAnswer, _ answer: LocalAnswer) {
        guard self.awaited === awaited else { return }
        self.awaited = nil
        deliver(answer)
        worker.enqueue(self)
    }

    // MARK: Responses of the service

    func accept() { machine.accept(isInputEmpty: stream.input.isEmpty) }

    func endAfterRequest() { machine.endAfterRequest() }

    func keepsAlive(after status: Int) -> Bool { mayStayOpen && machine.keepsAlive(after: status) }

    func writesWholeResponse() -> Bool { machine.writesWholeResponse() && mayStayOpen }

    func responseBegan(keepsAlive: Bool, endsWithConnection: Bool) {
        machine.responseBegan(keepsAlive: keepsAlive, endsWithConnection: endsWithConnection)
    }

    func responseIsWhole() { machine.responseIsWhole() }

    func write(_ body: (inout ByteQueue) -> Void) {
        let waiting = stream.output.count
        body(&stream.output)
        if stream.output.count != waiting { worker.enqueue(self) }
    }

    func bodyIsWanted() {
        if machine.bodyIsWanted() { stream.output.append("HTTP/1.1 100 Continue\r\n\r\n") }
        worker.enqueue(self)
    }

    func continueIsPassedOn() { machine.continueIsPassedOn() }

    func requestEnded(isBroken: Bool) {
        accessBuilder?.isWhole = !isBroken
        endAccess()
        service?.requestEnded()
        (awaited, readyAnswer) = (nil, nil)
        head.removeAll(keepingCapacity: 16_384)
        _ = machine.finish(mayStayOpen: mayStayOpen)
        worker.enqueue(self)
    }

    func reset() {
        flush()
        close(resetting: true)
    }

    func switchProtocol(to upstream: UpstreamConnection) {
        accessBuilder?.isWhole = true
        endAccess()
        machine.switchProtocol()
        switched = upstream
        worker.enqueue(self)
    }

    // MARK: The access log

    func recordAccess(_ reply: LocalReply, id: ExchangeID, upstream: String?) {
        // For a head that cannot be read, this is the first event.
        if accessBuilder == nil { accessBuilder = AccessRecordBuilder.begin(caller, on: worker, hasHead: false) }
        accessBuilder?.take(reply, id: id, upstream: upstream)
    }

    /// Writes the access record of the request, while the head still exists.
    func endAccess() {
        guard let builder = accessBuilder else { return }
        accessBuilder = nil
        builder.write(for: caller, on: worker, exchange: service?.exchange) { describe in
            withRequest { describe(service?.loggedRequest($0, in: $1) ?? $0, $1) }
        }
    }
}
