// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

// From bytes to exchanges.
extension DownstreamConnection {
    /// Reads one head, if it is there. Returns whether there may be more to do.
    func readHead() -> Bool {
        guard !input.isEmpty, output.count < Self.outputWindow else { return false }
        if let agent { return readFrame(by: agent) }
        let wasIdle = parser.isIdle
        switch input.withSpan({ parser.parse($0) }) {
        case .incomplete:
            if wasIdle { setTimeLimit(worker.limits.headTime) }
            return false
        case .refused where beginsFrames():
            return true
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
        if phase == .exchange, !(exchange?.wantsBody ?? false) {
            // The caller cannot be late now.
            if !isBodyHeld { setTimeLimit(nil) }
            isBodyHeld = true
            return false
        }
        let step = input.withSpan { body.decode($0) }
        switch step {
        case .data(let range, let consumed):
            if phase == .exchange { input.withSpan { exchange?.receiveBody($0.extracting(range.bounds)) } }
            input.consume(consumed)
            awaitsContinue = false
            if phase == .exchange { bodyCame(consumed) }
            return phase == .exchange || phase == .reply
        case .needMore(let consumed):
            input.consume(consumed)
            if phase == .exchange, !awaitsContinue { bodyCame(consumed) }
            return false
        case .end(let consumed):
            if phase == .exchange, !body.trailers.isEmpty { takeTrailers() }
            input.consume(consumed)
            isBodyComplete = true
            if awaited == nil { setTimeLimit(nil) }
            if phase == .exchange {
                exchange?.receiveBodyEnd()
            } else if let pendingReply {
                self.pendingReply = nil
                write(pendingReply)
            }
            return true
        case .refused(let error):
            breakOff(LocalReply(error))
            return false
        }
    }

    /// The fields behind the body, which the last step found in the input. Those go no further that `Connection` names.
    private func takeTrailers() {
        head.withSpan { head in
            input.withSpan { bytes in
                for line in body.trailers
                where !parser.head.nominates(trailer: bytes.extracting(line.name.bounds), in: head) {
                    exchange?.receiveTrailer(line, in: bytes)
                }
            }
        }
    }

    private func begin() {
        beginAccess(hasHead: true)
        let request = parser.head
        body = BodyDecoder(framing: request.body)
        isBodyComplete = request.body.isEmpty
        awaitsContinue = false
        isBodyHeld = false
        // Behind CONNECT, which is refused, the bytes of the tunnel may follow already: they are no requests. Nor is it certain that
        // what follows a HEAD with a body is one (RFC 9110 §9.3.2).
        let isFollowed = request.method != .connect && (request.method != .head || request.body.isEmpty)
        keepsAlive = request.keepsAlive && isFollowed
        response.reset(
            isHead: request.method == .head, version: request.version, acceptsTrailers: request.acceptsTrailers)
        if answersForItself(request) { return }
        if case .local(let service) = listener.service {
            answer(by: service, request)
            return
        }
        if listener.isAuthority {
            if prepareSubrequest() { start() }
            return
        }
        let verdict = head.withSpan {
            Admission.decide(request, in: $0, plan: listener, user: user, isUnixSocket: isUnixSocket)
        }
        switch verdict {
        case .refused(let refusal):
            // Who is not let in keeps no place.
            if refusal.code == .callerNotAllowed { keepsAlive = false }
            reply(refusal)
        case .answered(let answer):
            deliver(answer)
        case .admitted(let destination):
            if prepare(request, to: destination) { start() }
        }
    }
}
