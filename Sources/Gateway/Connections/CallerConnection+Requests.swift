// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

// From bytes to exchanges.
extension CallerConnection {
    /// Reads one head, if it is there. Returns whether there may be more to do.
    func readHead() -> Bool {
        guard !input.isEmpty, output.count < Self.outputWindow else { return false }
        let wasIdle = parser.isIdle
        switch input.withSpan({ parser.parse($0) }) {
        case .incomplete:
            if wasIdle { setTimeLimit(worker.limits.headTime) }
            return false
        case .refused(let error):
            // Nothing later on this connection is read (RFC 9112 §11.2).
            keepsAlive = false
            isBodyComplete = false
            reply(LocalReply(error))
            return false
        case .complete(let length):
            input.withSpan { head.append($0.extracting(0..<length)) }
            input.consume(length)
            begin()
            return phase != .head || !input.isEmpty
        }
    }

    /// Takes body bytes as far as they are wanted. Returns whether there may be more to do.
    func readBody() -> Bool {
        guard !isBodyComplete else { return false }
        if phase == .exchange, !(exchange?.wantsBody ?? false) { return false }
        let step = input.withSpan { body.decode($0) }
        switch step {
        case .data(let range, let consumed):
            if phase == .exchange { input.withSpan { exchange?.receiveBody($0.extracting(range.bounds)) } }
            input.consume(consumed)
            if phase == .exchange { setTimeLimit(worker.limits.bodyTime) }
            return phase == .exchange || phase == .reply
        case .needMore(let consumed):
            input.consume(consumed)
            return false
        case .end(let consumed):
            input.consume(consumed)
            isBodyComplete = true
            setTimeLimit(nil)
            if phase == .exchange {
                exchange?.receiveBodyEnd()
            } else if let pendingReply {
                self.pendingReply = nil
                write(pendingReply)
            }
            return true
        case .refused(let error):
            keepsAlive = false
            exchange?.cancel()
            if response.hasBegun { close(resetting: true) } else { reply(LocalReply(error)) }
            return false
        }
    }

    private func begin() {
        let request = parser.head
        body = BodyDecoder(framing: request.body)
        isBodyComplete = request.body.isEmpty
        keepsAlive = request.keepsAlive
        response.reset(isHead: request.method == .head, version: request.version)
        if case .local(let service) = listener.service {
            answer(by: service, request)
            return
        }
        let verdict = head.withSpan { Admission.decide(request, in: $0, plan: listener, user: user) }
        switch verdict {
        case .refused(let refusal):
            reply(refusal)
        case .admitted(let destination):
            forward(request, to: destination)
        }
    }

    private func forward(_ request: RequestHead, to destination: Router.Destination) {
        guard let client = worker.client(named: destination.upstream) else {
            reply(LocalReply(.noRoute, detail: "There is no upstream \(destination.upstream) any more."))
            return
        }
        guard worker.admitExchange() else {
            reply(
                LocalReply(
                    .overloaded, detail: "As many exchanges run as `limits.exchanges` allows.", retryAfter: 1))
            return
        }
        isAdmitted = true
        phase = .exchange
        setTimeLimit(isBodyComplete ? nil : worker.limits.bodyTime)
        upstreamAuthority = client.authority
        let otherMethod = request.method == .other ? head.withSpan { $0.text(request.methodRange) } : ""
        let outbound = ExchangeRequest(method: request.method, otherMethod: otherMethod, framing: request.body)
        if request.expectsContinue, input.isEmpty {
            // We take the body; libcurl is told not to ask for it a second time (RFC 9110 §10.1.1).
            output.append("HTTP/1.1 100 Continue\r\n\r\n")
        }
        let exchange = makeExchange()
        let target = request.target
        let path = target.form == .asterisk ? target.range : target.pathAndQuery
        let start = min(path.start + destination.stripped, path.end)
        head.withSpan { exchange.begin(outbound, path: $0.extracting(start..<path.end), to: client) }
        // Apart, for an exchange that fails at once gives the head up.
        exchange.start()
    }

    private func answer(by service: any LocalService, _ request: RequestHead) {
        let parsed: LocalRequest? = head.withSpan { bytes in
            guard request.authority.map({ listener.hosts.accepts($0, in: bytes) }) ?? true else { return nil }
            let path = bytes.text(request.target.path)
            let whole = bytes.text(request.target.pathAndQuery)
            return LocalRequest(
                method: bytes.text(request.methodRange), path: path,
                query: String(whole.dropFirst(path.count + 1)), isUnixSocket: user != nil)
        }
        guard let parsed else {
            reply(LocalReply(.hostNotAllowed, detail: "Only loopback names are served here."))
            return
        }
        deliver(service.answer(parsed))
    }

    // MARK: Replies of our own

    /// Answers the present request with `reply`, after its body where that is short enough to be read over.
    func reply(_ reply: LocalReply) {
        worker.count(reply)
        var fields = [("Proxy-Status", reply.proxyStatus)]
        if let seconds = reply.retryAfter { fields.append(("Retry-After", "\(seconds)")) }
        if reply.status == 405 { fields.append(("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")) }
        deliver(
            LocalAnswer(
                status: reply.status, contentType: "application/problem+json", body: reply.document, fields: fields))
    }

    private func deliver(_ answer: LocalAnswer) {
        let isShort = body.remaining.map { $0 <= UInt64(Self.inputWindow) } ?? false
        guard !isBodyComplete, keepsAlive, isShort, !parser.head.expectsContinue else {
            write(answer)
            return
        }
        pendingReply = answer
        phase = .reply
        setTimeLimit(worker.limits.bodyTime)
        worker.note(self)
    }

    private func write(_ answer: LocalAnswer) {
        if !isBodyComplete { keepsAlive = false }
        response.write(answer, date: worker.date(), keepsAlive: staysOpen, to: &output)
        requestEnded()
    }
}
