// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
package import Curl
internal import EventLoop
package import HTTPWire

/// One caller's request and its one final response: runs the transfers, waits for logins, sends again.
///
/// What happens when is decided by `ExchangeMachine`; this carries it out. Made once per caller's connection and used
/// for one request after the other, so that a keep-alive request allocates nothing here.
package final class Exchange: TransferOwner {
    let runtime: ClientRuntime
    /// Strong, as a weak reference costs every use of its object; `close` lets go of it.
    var caller: (any ExchangeCaller)?
    let timer: LazyTimer

    var machine = ExchangeMachine()
    var client: UpstreamClient?
    var route: RouteSessions?
    var request = ExchangeRequest(method: .get, framing: .none)
    /// Path and query as they go upstream.
    var target = ByteQueue()
    var body = ReplayBuffer(tiers: .none, isEmpty: true)
    /// True if the body is known to be longer than what is kept.
    var isTooLong = false
    /// Since when the upstream is asked whether it takes the body, until libcurl asks for that.
    var expectingSince = LoopInstant.never
    /// What came behind the request's body.
    var trailers = TrailerLines()
    /// The stream that carries the request, and its transfer.
    var stream: (any UpstreamStream)?
    var transfer: Transfer?
    /// The generation of the session that each slot's fields were taken from when the request was last sent.
    var used: [UInt64] = []
    /// What is remembered of sessions that bring nothing.
    var emptiness = Emptiness()
    var waitingFor: SessionKey?
    /// What the sessions' fields need to know of the body before it is sent.
    var reading = BodyReading()
    /// What the answer has to prove.
    var checks: [any AnswerCheck] = []
    private var swallowed = 0
    /// What was found in the answer to the request as it was last sent.
    var finding = Finding()
    /// The slot of a refused session for which `RefusalMemory` was told of a login.
    var notedSlot: Int?
    /// The session that this exchange tries for all, and its slot.
    var trial: (slot: Int, session: HeldSession)?
    /// The sessions' fields that the request was sent with, where something is to be learned from its answer.
    var attentive: SessionFields?
    /// The cookies in the answer that are the sessions', and not the caller's.
    package internal(set) var heldCookies = HeldCookies()
    /// The slot of a challenge that was met and of which nothing has come yet.
    var challengedSlot: Int?
    /// When the request was last sent, while its transfer runs.
    var sentAt = LoopInstant.never
    /// How long transfers of the present request have run, in nanoseconds.
    package internal(set) var upstreamTime: UInt64 = 0
    /// The challenge whose login the present request waited for, if it did.
    package internal(set) var awaitedLogin: String?
    /// The challenge that was met last, for the login that it leads to.
    var challenge: ExaminedResponse?
    /// True if a sub-request is answered without a session that nobody has proven yet.
    var isPartial = false
    /// Names this exchange to the session directory; a new one for each request.
    var ticket = ExchangeTicket(worker: 0, exchange: 0)

    /// An exchange for the requests of `caller`, one at a time.
    package init(runtime: ClientRuntime, caller: any ExchangeCaller) {
        self.runtime = runtime
        self.caller = caller
        timer = LazyTimer(loop: runtime.loop)
        timer.onExpiry = { [unowned self] in deadlinePassed() }
    }

    /// The name of the upstream, once begun.
    package var upstreamName: String { client?.plan.name ?? "" }
    /// How many challenges were answered for this request.
    package var rounds: Int { machine.roundCount }

    /// Takes over a request whose head has been read. `path`: path and query, as they come after the upstream's own
    /// path; empty for the root. Nothing happens before `start`, so `path` may lie in memory that `exchangeFailed` lets
    /// go of.
    package func begin(_ request: ExchangeRequest, path: Span<UInt8>, to client: UpstreamClient) {
        self.client = client
        self.request = request
        machine = ExchangeMachine()
        ticket = runtime.nextTicket()
        upstreamTime = 0
        awaitedLogin = nil
        isPartial = false
        trailers.removeAll()
        target.removeAll(keepingCapacity: 16_384)
        client.plan.writeTarget(path, into: &target)
        let route = client.routes.route(method: request.method, target: target)
        self.route = route
        prepareBody(client, route)
        // Not emptied: it shares the route's memory, and that would be copied.
        used = []
        emptiness = Emptiness()
        timer.arm(at: runtime.loop.now + client.responseDelay)
    }

    /// Starts what `begin` took over. The exchange may be over when this returns.
    package func start() {
        guard client != nil, route != nil else { return }
        perform(machine.start(missing: missingSlot))
    }

    // MARK: The request's body

    /// True if more of the request's body is wanted.
    package var wantsBody: Bool { body.wantsMore && !machine.isHolding }

    /// More of the request's body.
    package func receiveBody(_ data: Span<UInt8>) {
        body.append(data)
        bodyCame()
    }

    /// A field came behind the request's body. Followed by `receiveBodyEnd`.
    package func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>) { trailers.append([line], in: bytes) }

    /// The request's body is complete.
    package func receiveBodyEnd() {
        body.complete()
        bodyCame()
    }

    // MARK: The caller's doings

    /// The caller has room for more of the response again.
    package func resumeResponse() { transfer?.tellNews() }

    /// The caller went away, or sent what cannot be read: nothing is told to it any more.
    package func cancel() {
        guard !machine.hasEnded else { return }
        _ = machine.failed(ExchangeError(.callerGone, detail: ""))
        end()
    }

    /// Gives up the timer, before the connection goes.
    package func close() {
        cancel()
        timer.cancel()
        caller = nil
    }

    // MARK: Carrying out

    func perform(_ first: ExchangeMachine.Action) {
        var action = first
        while true {
            switch action {
            case .doNothing:
                return
            case .discard:
                // At once: what the caller still sends of the body must not push its beginning out while the login
                // runs. libcurl asks for no more of it after a head with 300 or above.
                _ = body.rewind()
                if let client { timer.arm(at: runtime.loop.now + client.responseDelay) }
                return
            case .look:
                timer.arm(at: runtime.loop.now + Self.lookDelay)
                return
            case .win(let slot):
                guard let next = win(slot) else { return }
                action = next
            case .confirm(let slot):
                guard let next = confirm(slot) else { return }
                action = next
            case .send:
                guard let next = request.isSubrequest ? authorize() : send() else { return }
                action = next
            case .deliver:
                deliverHead()
                return
            case .complete:
                caller?.exchangeHasAll()
                return
            case .finish:
                end()
                caller?.exchangeEnded()
                return
            case .handOver:
                handOver()
                return
            case .fail(let error):
                end()
                caller?.exchangeFailed(error)
                return
            case .truncate(let error):
                end()
                caller?.exchangeBroke(error)
                return
            }
        }
    }

    private func deliverHead() {
        guard let client, let transfer else { return }
        // The answer is final: nothing is sent again, however long it lasts.
        if request.hasBody { body.stopKeeping() }
        notedSlot = nil
        if let refusal = finding.refusal { runtime.gate.noteRefusal(refusal) }
        timer.arm(at: runtime.loop.now + client.idleDelay)
        caller?.exchangeDelivers(headOf: transfer)
    }

    /// Frees all that the exchange held, with the transfer in whatever state it is.
    func end() {
        timer.disarm()
        releaseTransfer()
        // At once: the file is a share of the budget of all, and a kept connection may rest for minutes.
        if request.hasBody { body.discard() }
        if let waitingFor { runtime.stopWaiting(ticket, for: waitingFor) }
        waitingFor = nil
        if trial != nil { judge(.undecided) }
        if attentive != nil {
            attentive = nil
            reading = BodyReading()
            checks = []
        }
        if challengedSlot != nil { noteChallenge(.failed) }
        challenge = nil
        if let notedSlot, let client, let place = place(of: notedSlot, at: client) {
            runtime.gate.change { $0.refusals.forget(place) }
        }
        notedSlot = nil
        finding = Finding()
        route = nil
    }

    func releaseTransfer() {
        guard let stream else { return }
        self.stream = nil
        transfer?.owner = nil
        transfer = nil
        upstreamTime &+= runtime.loop.now.nanoseconds(since: sentAt)
        stream.release()
    }

    // MARK: Transfers

    private func send() -> ExchangeMachine.Action? {
        guard let client, let route, let caller else { return nil }
        // Read once: each look at the property copies it.
        let request = request
        releaseTransfer()
        let resumed = body.rewind()
        assert(resumed, "the machine lets nothing be sent again that is not held")
        finding = Finding()
        swallowed = 0
        if challengedSlot != nil { noteChallenge(.answered) }
        let now = runtime.wallClock()
        route.refresh(from: runtime.gate, now: now)
        var sessions = route.fields
        used = route.generations
        emptiness.used = route.emptySlots
        if let trial {
            sessions = route.fields(trying: trial.session, in: trial.slot)
            used[trial.slot] = trial.session.generation
        }
        if request.goesUnbound { leaveUnbound(at: route) }
        attentive = sessions.isAttentive ? sessions : nil
        heldCookies = HeldCookies()
        if !client.plan.carriesSecrets, !sessions.isEmpty { return machine.failed(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.renew(route, of: client, now: now) }
        guard knowsBody(for: sessions, of: client) else { return nil }
        do throws(CurlError) {
            let stream = try client.stream(for: request, at: route, sessions: sessions)
            self.stream = stream
            transfer = stream.transfer
            stream.transfer.owner = self
            stream.transfer.begin(request)
            let head = runtime.head
            head.begin(request.methodName.utf8.span, target)
            defer { head.reset() }
            let cookies =
                sessions.hasCookies ? sessions.cookies(for: target, to: client.plan.base.origin, now: now) : nil
            caller.writeFields(into: head, overriddenBy: sessions, cookies: cookies)
            sessions.write(into: head, keepingCredentials: request.keepsCredentials)
            if let error = sign(by: sessions, of: client, into: head) { return machine.failed(error) }
            guard head.isGood else { throw .badFunctionArgument }
            expectingSince = request.expectsContinue ? runtime.loop.systemNow : .never
            sentAt = runtime.loop.now
            timer.arm(at: sentAt + client.responseDelay)
            try stream.start(request, head: head, target: target)
            return nil
        } catch {
            return machine.failed(ExchangeError(error, upstream: client.plan))
        }
    }

    /// Passes interim responses on. 100 is the caller's only where nobody here asked for it: else it is told by
    /// `exchangeWantsBody` (RFC 9110 §15.2).
    package func transferHasInterims(_ transfer: Transfer) {
        guard let caller else { return }
        let isAsked = request.expectsContinue
        transfer.takeInterims { head, bytes in
            if head.status == 100, isAsked {
                caller.exchangeWantsBody()
            } else {
                caller.exchangeDelivers(interim: head, in: bytes)
            }
        }
    }

    /// Passes the body on, or swallows that of a challenge.
    package func transferHasBody(_ transfer: Transfer) {
        if machine.isLooking {
            guard transfer.body.count >= ExaminedResponse.bodyLimit || transfer.isAtEnd else { return }
            look(at: transfer)
            // What was kept for the look is taken here now, as if it had just come.
            guard self.transfer === transfer else { return }
        }
        if machine.isHolding { return }
        if machine.hasDelivered {
            caller?.exchangeDelivers(bodyOf: transfer)
            if let client { timer.arm(at: runtime.loop.now + client.idleDelay) }
            return
        }
        swallowed += transfer.body.count
        transfer.body.removeAll()
        // A challenge this long is not worth its connection.
        if swallowed > Transfer.window { perform(machine.answerComplete()) }
    }

    /// A challenge's end is all that is waited for; an answer that goes to the caller is at its end, too.
    package func transferHasAll(_ transfer: Transfer) {
        if machine.isLooking { look(at: transfer) }
        guard self.transfer === transfer, !machine.isHolding else { return }
        deliverTrailers(of: transfer)
        perform(machine.answerWhole(isRefusal: transfer.answer.status >= 300))
    }

    /// The request's body, from where the transfer stopped reading.
    package func supplyBody(into buffer: UnsafeMutableRawBufferPointer) -> BodySupply {
        // The answer is there and asks for another request; its end is still to come.
        guard !machine.isSettling, !machine.isHolding else { return .pause }
        if expectingSince != .never { noteExpectation() }
        let count = unsafe body.read(into: buffer)
        if count > 0 { return .bytes(count) }
        if body.isBroken { return .abort }
        guard body.isExhausted else { return .pause }
        return trailers.isEmpty || supplyTrailers() ? .end : .abort
    }

    /// Asks the caller for more of the body where there is room for it.
    package func transferTookBody(_ transfer: Transfer) {
        if let client, !machine.hasDelivered, !machine.isLooking {
            // While the request is under way its answer is not late; and not at all while the caller is waited for, who has
            // a time limit of its own.
            if body.isDrained { timer.disarm() } else { timer.arm(at: runtime.loop.now + client.responseDelay) }
        }
        if !machine.hasEnded, wantsBody { caller?.exchangeWantsBody() }
    }

    /// RFC 9110 §9.2.2: only an idempotent request is sent again by itself, and only where all of its body is held.
    package func mayResend() -> Bool {
        request.method.isIdempotent && body.rewind()
    }

    private func deadlinePassed() {
        guard let client else { return }
        if reading.isReading {
            readBody()
            return
        }
        if machine.isLooking, let transfer {
            look(at: transfer)
            transfer.tellNews()
            return
        }
        if machine.isHolding { return giveUpConfirmation() }
        perform(machine.failed(.deadline(of: client.plan, isWaiting: machine.isWaiting)))
    }
}
