// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import HTTPWire

// Answers of our own.
extension DownstreamConnection {
    /// Answers the present request with `reply`, after its body where that is short enough to be read over.
    ///
    /// `upstream`: where the request would have gone, where no exchange has begun.
    func reply(_ reply: LocalReply, of upstream: UpstreamClient? = nil) {
        let reply = noted(reply, of: upstream)
        if let agent { return acknowledge(reply, by: agent) }
        let local = listener.isAuthority ? reply.denial : reply
        var answer = local.answer(allow: local.status == 405 ? Admission.methods : nil)
        if listener.isAuthority { answer.fields += reply.denialFields }
        deliver(answer)
    }

    /// The same reply with the id of the present request, counted, and noted in the logs.
    func noted(_ reply: LocalReply, of upstream: UpstreamClient? = nil) -> LocalReply {
        count(reply, of: upstream)
        let id = requestID
        // What comes of a head that cannot be read is the first that is known of it.
        beginAccess(hasHead: false)
        if let accessNote {
            accessNote.code = reply.code
            accessNote.id = id
            accessNote.upstream = upstream?.plan.name
        }
        worker.log.replied(reply, listener: listener.name, isRefusal: !isAdmitted && !listener.isLocal, id: id)
        return reply.identified(by: id)
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
        accessNote?.status = answer.status
        accessNote?.bytes = response.isBodyless ? 0 : answer.body.count
        requestEnded()
    }

    func answer(by service: any LocalService, _ request: RequestHead) {
        let refusal = head.withSpan {
            Admission.refusal(ofLocal: request, in: $0, plan: listener, isUnixSocket: isUnixSocket)
        }
        if let refusal { return reply(refusal) }
        let parsed = head.withSpan { bytes in
            let path = bytes.text(request.target.path)
            let whole = bytes.text(request.target.pathAndQuery)
            return LocalRequest(
                method: bytes.text(request.methodRange), path: path,
                query: String(whole.dropFirst(path.count + 1)), isUnixSocket: isUnixSocket,
                accept: request.fields.filter { $0.kind == .accept }.map { bytes.text($0.value) }
                    .joined(separator: ","))
        }
        if let later = service.later(parsed) { waitFor(later) } else { deliver(service.answer(parsed)) }
    }

    /// Answers when that is there which `later` waits for, or when it has waited long enough.
    private func waitFor(_ later: LaterAnswer) {
        let awaited = AwaitedAnswer(make: later.answer)
        self.awaited = awaited
        phase = .reply
        timer.arm(at: worker.loop.now + later.patience)
        let bound = LoopBound((connection: self, awaited: awaited), to: worker.loop)
        later.begin { [loop = worker.loop] in
            loop.execute { bound.value.connection.deliver(bound.value.awaited) }
        }
    }

    /// What was waited for is there, or is waited for no longer. Nothing, where that was so before.
    func deliver(_ awaited: AwaitedAnswer) {
        guard self.awaited === awaited else { return }
        self.awaited = nil
        guard phase == .reply else { return }
        deliver(awaited.make())
        worker.note(self)
    }
}

/// An answer of our own that is still to be made; an object, so that a later one is not taken for it.
final class AwaitedAnswer {
    let make: @Sendable () -> LocalAnswer

    init(make: @escaping @Sendable () -> LocalAnswer) { self.make = make }
}
