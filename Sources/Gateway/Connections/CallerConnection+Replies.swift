// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

// Answers of our own.
extension CallerConnection {
    /// Answers the present request with `reply`, after its body where that is short enough to be read over.
    func reply(_ reply: LocalReply) {
        worker.count(reply)
        let id = requestID
        worker.log.replied(reply, listener: listener.name, isRefusal: !isAdmitted && !listener.isLocal, id: id)
        let reply = reply.identified(by: id)
        deliver(reply.answer(allow: reply.status == 405 ? Admission.methods : nil))
    }

    /// The id of the present request; one of its own where no exchange has begun.
    private var requestID: ExchangeID {
        if isAdmitted, let exchange { return exchange.id }
        return worker.runtime.nextID()
    }

    /// Answers the present request with `answer`, after its body where that is short enough to be read over.
    func deliver(_ answer: LocalAnswer) {
        let isShort = body.remaining.map { $0 <= UInt64(Self.inputWindow) } ?? false
        guard !isBodyComplete, keepsAlive, isShort, !parser.head.awaitsAnswer else {
            write(answer)
            return
        }
        pendingReply = answer
        phase = .reply
        setTimeLimit(worker.limits.bodyTime)
        worker.note(self)
    }

    func write(_ answer: LocalAnswer) {
        if !isBodyComplete { keepsAlive = false }
        response.write(answer, date: worker.date(), keepsAlive: staysOpen, to: &output)
        requestEnded()
    }

    func answer(by service: any LocalService, _ request: RequestHead) {
        let parsed: LocalRequest? = head.withSpan { bytes in
            guard request.authority.map({ listener.hosts.accepts($0, in: bytes) }) ?? true else { return nil }
            let path = bytes.text(request.target.path)
            let whole = bytes.text(request.target.pathAndQuery)
            return LocalRequest(
                method: bytes.text(request.methodRange), path: path,
                query: String(whole.dropFirst(path.count + 1)), isUnixSocket: isUnixSocket)
        }
        guard let parsed else {
            reply(LocalReply(.hostNotAllowed, detail: "Only loopback names are served here."))
            return
        }
        deliver(service.answer(parsed))
    }
}
