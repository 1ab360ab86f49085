// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
package import HTTPWire

/// One caller's request and its one final response: runs the transfers, waits for logins, sends again.
///
/// `ExchangeMachine` decides; this carries out. Made once per caller's connection and used for one request after the other, so that a
/// keep-alive request allocates nothing here.
package final class Exchange {
    /// The time for which a page that trickles in is waited for before it is judged by what is there.
    static let lookDelay = LoopDelay(.seconds(2))

    let runtime: ClientRuntime
    /// Strong, as a weak reference costs every use of its object; `close` lets go of it.
    private(set) var caller: (any ExchangeCaller)?
    let timer: LazyTimer

    var machine = ExchangeMachine()
    private(set) var client: UpstreamClient?
    private(set) var request = ExchangeRequest(method: .get, framing: .none)
    /// Path and query as they go upstream.
    private(set) var target = ByteQueue()
    var body = ExchangeBody()
    var sessions = CarriedSessions()
    /// The challenge that was met last, for the login that it leads to.
    var challenge: ExaminedResponse?
    /// The finding in the answer to the request as it was last sent.
    var finding = Finding()
    /// True if an auth request is answered without a session that nobody has proven yet.
    var isPartial = false
    /// The session whose login or confirmation is waited for.
    var waitingFor: SessionKey?
    /// The stream that carries the request, and its transfer.
    private(set) var stream: (any UpstreamStream)?
    private(set) var transfer: Transfer?
    /// The instant at which the request was last sent, while its transfer runs.
    private var sentAt = LoopInstant.never
    /// The time for which transfers of the present request have run, in nanoseconds.
    package private(set) var upstreamTime: UInt64 = 0
    /// The challenge whose login the present request waited for, if it did.
    package internal(set) var awaitedLogin: String?
    /// Names this exchange to the attempt gate; a new one for each request.
    private(set) var ticket = ExchangeTicket(worker: 0, exchange: 0)

    /// An exchange for the requests of `caller`, one at a time.
    package init(runtime: ClientRuntime, caller: any ExchangeCaller) {
        self.runtime = runtime
        self.caller = caller
        timer = LazyTimer(loop: runtime.loop)
        timer.onExpiry = { [unowned self] in timerExpired() }
    }

    /// The name of the upstream, once begun.
    package var upstreamName: String { client?.plan.name ?? "" }
    /// The number of challenges that were answered for this request.
    package var rounds: Int { machine.rounds }
    /// The id of the present request, once begun.
    package var id: ExchangeID { runtime.id(of: ticket) }
    /// The cookies in the answer that are the sessions', and not the caller's.
    package var heldCookies: HeldCookies { sessions.heldCookies }

    /// Takes over a request whose head has been read. `path`: path and query, as they come after the upstream's own
    /// path; empty for the root. Nothing happens before `start`, so `path` may lie in memory that `exchangeFailed` lets
    /// go of.
    package func begin(_ request: ExchangeRequest, path: Span<UInt8>, to client: UpstreamClient) {
        self.client = client
        self.request = request
        ticket = runtime.nextTicket()
        upstreamTime = 0
        awaitedLogin = nil
        isPartial = false
        target.removeAll(keepingCapacity: 16_384)
        client.plan.writeTarget(path, into: &target)
        let route = client.routes.route(method: request.method, target: target)
        sessions.begin(at: route)
        body.begin(
            request, keeping: client.plan.replay, canBeChallenged: route.canBeChallenged, spool: runtime.services.replay
        )
        // A body that cannot be kept waits for the upstream's word, so that a challenge comes before it.
        let asks = body.isTooLong && !request.isUpgrade && client.expectations.isHonored(at: runtime.loop.now)
        machine = ExchangeMachine(expectsContinue: request.expectsContinue || asks)
        timer.arm(at: runtime.loop.now + client.responseDelay)
    }

    /// Starts what `begin` took over. The exchange may be over when this returns.
    package func start() {
        guard client != nil, sessions.route != nil else { return }
        perform(machine.start(missing: missingSlot))
    }

    // MARK: The request's body

    /// True if more of the request's body is wanted.
    package var wantsBody: Bool { body.wantsMore && !machine.state.isHolding }

    /// More of the request's body.
    package func receiveBody(_ data: Span<UInt8>) {
        body.append(data)
        bodyCame()
    }

    /// A field came behind the request's body. Followed by `receiveBodyEnd`.
    package func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>) { body.append(trailer: line, in: bytes) }

    /// The request's body is complete.
    package func receiveBodyEnd() {
        body.complete()
        bodyCame()
    }

    private func bodyCame() {
        transfer?.bodyAvailable()
        if machine.state == .reading { timer.arm(at: runtime.loop.now) }
    }

    // MARK: The caller's doings

    /// The caller has room for more of the response again.
    package func resumeResponse() { transfer?.tellNews() }

    /// The caller went away, or sent what cannot be read: nothing is told to it any more.
    package func cancel() {
        guard !machine.state.hasEnded else { return }
        machine.cancelled()
        end()
    }

    /// Gives up the timer, before the connection goes.
    package func close() {
        cancel()
        timer.cancel()
        caller = nil
    }

    // MARK: Carrying out

    /// Carries out the next step on the way to a transfer.
    func perform(_ action: ExchangeMachine.BeginAction) {
        if machine.hasNews { settleNews() }
        switch action {
        case .wait: return
        case .logIn(let slot): logIn(slot)
        case .send: if request.isSubrequest { authorize() } else { send() }
        case .fail(let error): fail(error)
        }
    }

    /// The exchange cannot go on, because of `error`.
    func breakOff(_ error: ExchangeError) { perform(machine.failed(error)) }

    /// Carries out the end of an exchange that cannot go on.
    func perform(_ action: ExchangeMachine.BreakAction) {
        switch action {
        case .wait: return
        case .finish: finish()
        case .fail(let error): fail(error)
        case .truncate(let error): truncate(error)
        }
    }

    func finish() {
        end()
        caller?.exchangeEnded()
    }

    func fail(_ error: ExchangeError) {
        end()
        caller?.exchangeFailed(error)
    }

    func truncate(_ error: ExchangeError) {
        end()
        caller?.exchangeBroke(error)
    }

    /// Frees all that the exchange held, with the transfer in whatever state it is.
    func end() {
        timer.disarm()
        if stream != nil { releaseTransfer() }
        if request.hasBody { body.discard() }
        if let waitingFor { runtime.waiters.remove(ticket, for: waitingFor) }
        waitingFor = nil
        if machine.hasNews { settleNews() }
        challenge = nil
        if let slot = sessions.refusedSlot { forgetRefusal(of: slot) }
        if sessions.end() { body.forgetDigests() }
        finding = Finding()
    }

    private func timerExpired() {
        guard let client else { return }
        switch machine.timerExpired() {
        case .wait: return
        case .readBody: readBody()
        case .keepSession: giveUpConfirmation()
        case .timeOut(let isWaiting): breakOff(.deadline(of: client.plan, isWaiting: isWaiting))
        case .look:
            guard let transfer else { return }
            look(at: transfer)
            transfer.tellNews()
        }
    }

    // MARK: Sending

    func send() {
        guard let client, let route = sessions.route, let caller else { return }
        if stream != nil { releaseTransfer() }
        let isWhole = body.rewind()
        assert(isWhole, "the machine lets nothing be sent again that is not held")
        finding = Finding()
        let now = runtime.wallClock()
        let fields = sessions.load(from: runtime.gate, now: now, goesUnbound: machine.goesUnbound)
        if !client.plan.carriesSecrets, !fields.isEmpty { return breakOff(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.logins.renew(route, of: client, now: now) }
        request.expectsContinue = machine.expectsContinue
        request.goesUnbound = machine.goesUnbound
        // Read once: each look at the property copies it.
        let request = request
        if request.hasBody, fields.hasSigners, !request.keepsCredentials,
            body.beginReading(for: fields.bodyDigests(for: target.text))
        {
            machine.bodyIsUnread()
            // By the timer only: whoever brought more of the body is not to find the exchange over.
            return timer.arm(at: runtime.loop.now)
        }
        do throws(CurlError) {
            let stream = try client.streams.stream(for: request, at: route.connections, sessions: fields)
            self.stream = stream
            transfer = stream.transfer
            stream.transfer.owner = self
            stream.transfer.begin(request)
            let head = runtime.head
            head.begin(request.methodName.utf8.span, target)
            defer { head.reset() }
            let cookies = fields.hasCookies ? fields.cookies(for: target, to: client.plan.base.origin, now: now) : nil
            caller.writeFields(into: head, overriddenBy: fields, cookies: cookies)
            fields.write(into: head, keepingCredentials: request.keepsCredentials)
            if fields.hasSigners, !request.keepsCredentials, let error = sign(by: fields, of: client, into: head) {
                return breakOff(error)
            }
            guard head.isGood else { throw .badFunctionArgument }
            machine.requestIsSent()
            sentAt = runtime.loop.now
            timer.arm(at: sentAt + client.responseDelay)
            try stream.start(request, head: head, target: target)
        } catch {
            breakOff(ExchangeError(error, upstream: client.plan))
        }
    }

    /// Adds the signed fields of `sessions` to the request, all others of which are written. Returns why the exchange ends, if there
    /// can be none.
    private func sign(
        by fields: SessionFields, of client: UpstreamClient, into head: FieldSink
    ) -> ExchangeError? {
        let digests = body.digests.map { SigningRequest.Body.digests($0) } ?? .unread
        do throws(LoginFailure) {
            sessions.checks = try fields.sign(
                signing(at: client, body: request.hasBody ? digests : .none, fields: head)
            ) { head.append(name: $0.rawName.utf8.span, value: $1) }
            return nil
        } catch {
            return ExchangeError(error)
        }
    }

    /// The request as signers see it.
    func signing(
        at client: UpstreamClient, body: SigningRequest.Body, fields: (any SigningFields)? = nil
    ) -> SigningRequest {
        SigningRequest(
            method: request.methodName, origin: client.plan.base.origin, target: target.text, body: body, fields: fields
        )
    }

    /// Goes on with the body whose digest is to be known before it is sent.
    private func readBody() {
        switch machine.bodyRead(body.readOn()) {
        case .wait: return
        case .send: send()
        case .readOn: timer.arm(at: runtime.loop.now)
        case .askCaller:
            // The caller has a time limit of its own.
            timer.disarm()
            caller?.exchangeWantsBody()
        case .refuse:
            guard let client, let fields = sessions.attentive else { return }
            do throws(LoginFailure) {
                // The signer may have a better word for it.
                _ = try fields.sign(signing(at: client, body: .unread)) { _, _ in }
                breakOff(.bodyNotReplayable)
            } catch {
                breakOff(ExchangeError(error))
            }
        }
    }

    func releaseTransfer() {
        guard let stream else { return }
        self.stream = nil
        transfer?.owner = nil
        transfer = nil
        upstreamTime &+= runtime.loop.now.nanoseconds(since: sentAt)
        stream.release()
    }
}
