// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

// How long a caller is waited for. Nobody may hold a connection for nothing: a head has a time for all of it, a body has to
// get ahead, and so has whoever takes a response (`WriteLimit`).
extension DownstreamConnection {
    /// A request has begun to come in, or an exchange takes over with time limits of its own.
    func setTimeLimit(_ limit: Duration?) {
        bodyArrived = 0
        if let limit { timer.arm(at: worker.loop.now + limit) } else { timer.disarm() }
    }

    /// So much of a request's body has come in. The time for more begins anew once that is worth it: a caller that sends a byte
    /// now and then holds an exchange and a connection upstream.
    func bodyCame(_ count: Int) {
        if isBodyHeld {
            isBodyHeld = false
            setTimeLimit(worker.limits.bodyTime)
            return
        }
        bodyArrived += count
        if bodyArrived >= worker.limits.bodyPace { setTimeLimit(worker.limits.bodyTime) }
    }

    /// The connection waits for the next request.
    func awaitRequest() {
        isQuiet = false
        timer.arm(at: worker.loop.now + worker.quietDelay)
    }

    /// The time that the timer was set for is over.
    func timeLimitPassed() {
        if let agent, timeLimitPassed(for: agent) { return }
        switch phase {
        case .head where parser.isIdle && !output.isEmpty, .closing where !output.isEmpty:
            // The caller still takes the answers before; that has a limit of its own.
            timer.arm(at: worker.loop.now + worker.quietDelay)
        case .head where isNoted && !input.isEmpty:
            // What has come in this very turn is read before it is called late: the thread may have had no processor when it came.
            let wasIdle = parser.isIdle
            advance()
            if phase == .head, !wasIdle, !parser.isIdle { refuseLateHead() }
        case .head where !parser.isIdle || !input.isEmpty: refuseLateHead()
        case .head where hasServed && !isQuiet:
            becomeQuiet()
        case .reply where awaited != nil:
            if let awaited { deliver(awaited) }
        case .reply:
            // It gets its answer all the same; the rest of the body is not read.
            keepsAlive = false
            if let pendingReply {
                self.pendingReply = nil
                write(pendingReply)
            } else {
                close()
            }
        case .exchange where isBodyComplete:
            lookForCaller()
        case .exchange:
            breakOff(LocalReply(.badRequest, status: 408, detail: "The request's body did not come in time."))
        case .head, .closing, .lingering, .closed, .tunnel:
            close()
        }
    }

    /// Answers a caller that is slow or stuck in the middle of a head with 408 (RFC 9110 §15.5.9).
    private func refuseLateHead() {
        keepsAlive = false
        isBodyComplete = false
        reply(LocalReply(.badRequest, status: 408, detail: "The request's head did not come in time."))
    }

    /// Gives back what a connection needs for a request only. A busy one keeps it: this is for those that have had nothing to
    /// do for a while, of which there may be thousands.
    private func becomeQuiet() {
        isQuiet = true
        let held = input.capacity + output.capacity + head.capacity
        input.removeAll(keepingCapacity: 0)
        output.removeAll(keepingCapacity: 0)
        head.removeAll(keepingCapacity: 0)
        parser = RequestHeadParser(limits: listener.headLimits)
        response = ForwardedResponse()
        agent?.writer.becomeQuiet()
        terms = ForwardedRequest.Terms()
        // After a reload it would keep the old one alive.
        upstream = nil
        dropExchange()
        worker.gaveBack(held)
        timer.arm(at: worker.loop.now + worker.idleDelay)
    }
}
