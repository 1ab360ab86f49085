// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

// The services' side of a connection.
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
            worker.note(self)
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
        accessNote?.status = answer.status
        accessNote?.bytes = isHead ? 0 : answer.body.count
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

    /// Delivers an answer that is there, or is waited for no longer; nothing where that was done before.
    func deliver(_ awaited: AwaitedAnswer) {
        guard self.awaited === awaited else { return }
        self.awaited = nil
        deliver(awaited.make())
        worker.note(self)
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
        if stream.output.count != waiting { worker.note(self) }
    }

    func bodyIsWanted() {
        if machine.bodyIsWanted() { stream.output.append("HTTP/1.1 100 Continue\r\n\r\n") }
        worker.note(self)
    }

    func continueIsPassedOn() { machine.continueIsPassedOn() }

    func requestEnded(isBroken: Bool) {
        accessNote?.isWhole = !isBroken
        endAccess()
        service?.requestEnded()
        (awaited, readyAnswer) = (nil, nil)
        head.removeAll(keepingCapacity: 16_384)
        _ = machine.finish(mayStayOpen: mayStayOpen)
        worker.note(self)
    }

    func reset() {
        flush()
        close(resetting: true)
    }

    func switchProtocol(to upstream: UpstreamConnection) {
        accessNote?.isWhole = true
        endAccess()
        machine.switchProtocol()
        switched = upstream
        worker.note(self)
    }

    // MARK: The access log

    func noteAccess(_ reply: LocalReply, id: ExchangeID, upstream: String?) {
        // What comes of a head that cannot be read is the first that is known of it.
        if accessNote == nil { accessNote = AccessNote.begin(caller, on: worker, hasHead: false) }
        accessNote?.take(reply, id: id, upstream: upstream)
    }

    /// The request is over: writes the record, while the head is still there.
    func endAccess() {
        guard let note = accessNote else { return }
        accessNote = nil
        note.write(for: caller, on: worker, exchange: service?.exchange) { describe in
            withRequest { describe(service?.loggedRequest($0, in: $1) ?? $0, $1) }
        }
    }
}
