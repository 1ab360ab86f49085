// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPTypes
package import HTTPWire

/// One caller's request and its one final response: runs transfers, waits for logins, sends again.
///
/// `ExchangeMachine` decides, this class carries out. Made once per caller's connection and reused for each request, so
/// that a keep-alive request allocates nothing here.
package final class Exchange {
    /// The wait for more of a slow page, which is then examined as received.
    static let examinationDelay = LoopDelay(.seconds(2))

    let runtime: ClientRuntime
    /// A strong reference, as a weak one costs at every use; `close` releases it.
    private(set) var caller: (any ExchangeCaller)?
    let timer: LazyTimer

    var machine = ExchangeMachine()
    private(set) var client: UpstreamClient?
    private(set) var request = ExchangeRequest(method: .get, framing: .none)
    /// Path and query as sent upstream.
    private(set) var target = ByteQueue()
    var body = ExchangeBody()
    /// The decoder of an `aws-chunked` body.
    var chunks: AWSChunkDecoder?
    /// The request and its answer with values of the sessions.
    var injected = InjectedRequest()
    /// True if the request was last sent with such values.
    private(set) var isInjected = false
    var sessions = CarriedSessions()
    /// The last challenge, passed to the login that it leads to.
    var challenge: ExaminedResponse?
    /// The result of examining the answer to the last sending.
    var finding = Finding()
    /// True if an auth request is answered without an unverified session.
    var isPartial = false
    /// The key of the session whose login or confirmation is awaited.
    var waitingFor: SessionKey?
    /// True if this exchange leads the login that it waits for.
    var leadsLogin = false
    /// The stream that carries the request, and its transfer.
    private(set) var stream: (any UpstreamStream)?
    private(set) var transfer: Transfer?
    /// The connection of the caller's own handshake with the server, while there is one.
    var handshake: CallerHandshake?
    /// The time of the last sending, while its transfer runs.
    private(set) var sentAt = LoopInstant.never
    /// Total run time of the current request's transfers, in nanoseconds.
    package private(set) var upstreamTime: UInt64 = 0
    /// The challenge whose login the current request waited for, if any.
    package internal(set) var awaitedLogin: String?
    /// Identifies this exchange at the attempt gate; new for each request.
    private(set) var ticket = ExchangeTicket(worker: 0, exchange: 0)

    /// Creates an exchange for the requests of `caller`, one at a time.
    package init(runtime: ClientRuntime, caller: any ExchangeCaller) {
        self.runtime = runtime
        self.caller = caller
        timer = LazyTimer(loop: runtime.loop)
        timer.onExpiry = { [unowned self] in timerExpired() }
    }

    /// The name of the upstream, once begun.
    package var upstreamName: String { client?.plan.name ?? "" }
    /// The number of challenges answered for this request.
    package var rounds: Int { machine.rounds }
    /// The id of the current request, once begun.
    package var id: ExchangeID { runtime.id(of: ticket) }
    /// The cookies in the answer that belong to the sessions, not to the caller.
    package var heldCookies: HeldCookies { sessions.heldCookies }

    /// Accepts a request whose head has been read.
    ///
    /// `path`: path and query, appended to the upstream's own path; empty for the root. Nothing is sent before `start`,
    /// so `path` may lie in memory that `exchangeFailed` releases.
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
        if chunks != nil { chunks = nil }
        if let length = request.chunkedDataLength, route.decodesChunks, !request.keepsCredentials {
            chunks = AWSChunkDecoder(length: length)
            self.request.framing = .length(length)
        }
        body.begin(
            self.request, keeping: client.plan.replay, mayNeedAgain: route.mayNeedBodies,
            isReadFirst: route.changesBodies, spool: runtime.services.replay)
        // A body too long to be held waits for 100, so that a challenge comes before it.
        let asks = body.isTooLong && !request.isUpgrade && client.expectations.isHonored(at: runtime.loop.now)
        machine = ExchangeMachine(expectsContinue: request.expectsContinue || asks)
        timer.arm(at: runtime.loop.now + client.responseDelay)
    }

    /// Starts the request passed to `begin`. The exchange may be over on return.
    package func start() {
        guard client != nil, sessions.route != nil else { return }
        let missing = missingSlot
        if missing == nil, waitsForFirstRequest() { return }
        perform(machine.start(missing: missing))
    }

    // MARK: The request's body

    /// True if more of the request's body is wanted.
    package var wantsBody: Bool { body.wantsMore && !machine.state.isHolding }

    /// Receives more of the request's body.
    package func receiveBody(_ data: Span<UInt8>) {
        if chunks != nil { return receiveChunks(data) }
        body.append(data)
        bodyCame()
    }

    /// Receives a trailer of the request's body. Followed by `receiveBodyEnd`.
    package func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>) { body.append(trailer: line, in: bytes) }

    /// Receives the end of the request's body.
    package func receiveBodyEnd() {
        if chunks != nil, !finishChunks() { return }
        body.complete()
        bodyCame()
    }

    func bodyCame() {
        transfer?.bodyAvailable()
        if machine.state == .reading { timer.arm(at: runtime.loop.now) }
    }

    // MARK: The caller's actions

    /// Resumes delivery after the caller has room for more of the response.
    package func resumeResponse() { transfer?.notifyOwner() }

    /// Ends the exchange because the caller went away or sent an unreadable request. The caller gets no further calls.
    package func cancel() {
        guard !machine.state.hasEnded else { return }
        machine.recordSending(hasSent)
        machine.cancelled()
        end()
    }

    /// Cancels the exchange and releases timer and caller, before the connection is closed.
    package func close() {
        cancel()
        endHandshake()
        timer.cancel()
        caller = nil
    }

    // MARK: Actions

    /// Carries out the next step towards a transfer.
    func perform(_ action: ExchangeMachine.BeginAction) {
        if machine.hasOutcomes { reportOutcomes() }
        switch action {
        case .wait: return
        case .logIn(let slot): logIn(slot)
        case .send: if request.isAuthRequest { authorize() } else { send() }
        case .fail(let error): fail(error)
        }
    }

    /// Aborts the exchange because of `error`.
    func abort(_ error: ExchangeError) {
        machine.recordSending(hasSent)
        perform(machine.failed(error))
    }

    /// True if some of the current request may have left this machine.
    var hasSent: Bool { stream?.hasSent == true }

    /// Carries out the end of an aborted exchange.
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

    /// Releases everything that the exchange held, in any state of the transfer.
    func end() {
        timer.disarm()
        if stream != nil { releaseTransfer() }
        if request.hasBody { body.discard() }
        if let waitingFor { runtime.waiters.remove(ticket, for: waitingFor) }
        waitingFor = nil
        endFirstRequest(.unknown)
        if machine.hasOutcomes { reportOutcomes() }
        challenge = nil
        if let slot = sessions.refusedSlot { forgetRefusal(of: slot) }
        sessions.end()
        if isInjected { endInjection() }
        finding = Finding()
    }

    private func timerExpired() {
        guard let client else { return }
        switch machine.timerExpired() {
        case .wait: return
        case .readBody: readBody()
        case .keepSession: giveUpConfirmation()
        case .endLook: lookEnded(.unknown)
        case .timeOut(isWaiting: true) where sessions.isBehind: goWithoutSession()
        case .timeOut(let isWaiting): abort(.deadline(of: client.plan, isWaiting: isWaiting))
        case .examineBody:
            guard let transfer else { return }
            examineBody(of: transfer)
            transfer.notifyOwner()
        }
    }

    // MARK: Sending

    func send() {
        guard let client, let route = sessions.route, let caller else { return }
        if stream != nil { releaseTransfer() }
        guard body.rewind() else {
            assertionFailure("the machine lets nothing be sent again that is not held")
            return abort(.bodyNotReplayable)
        }
        finding = Finding()
        let now = runtime.wallClock()
        let fields = sessions.load(
            from: runtime.gate, now: now, omitsConnectionCredential: machine.omitsConnectionCredential,
            as: machine.userAgent.slot.map { client.plan.userAgent(of: route.slots[$0].login.name) })
        if route.hasLoginsAhead, let slot = route.ended(for: request, carrying: sessions) {
            return perform(machine.sessionIsOver(slot, login: route.slots[slot].key.challenge))
        }
        if !client.plan.carriesSecrets, !fields.isEmpty { return abort(.plaintext(of: client.plan)) }
        if now >= route.renewAt { runtime.logins.renew(route, of: client, now: now) }
        request.expectsContinue = machine.expectsContinue
        request.omitsConnectionCredential = machine.omitsConnectionCredential
        request.triesCredential = machine.triesCredential
        // Read once: each access to the property copies it.
        var request = request
        let values = fields.injections
        if let values {
            isInjected = true
            switch inject(values, of: fields, at: client) {
            case .done(let framing): request.framing = framing
            case .refused(let error): return abort(error)
            case .waiting:
                machine.bodyIsUnread()
                return timer.arm(at: runtime.loop.now)
            }
        } else if isInjected {
            endInjection()
        }
        if request.hasBody, fields.hasSigners, !request.keepsCredentials,
            body.beginReading(by: fields.bodyReaders(for: target.text))
        {
            machine.bodyIsUnread()
            // By the timer only: the exchange must not end while the caller delivers more of the body.
            return timer.arm(at: runtime.loop.now)
        }
        do throws(CurlError) {
            let stream = try makeStream(for: request, carrying: fields, at: route, of: client)
            self.stream = stream
            transfer = stream.transfer
            stream.transfer.owner = self
            stream.transfer.begin(request)
            let head = runtime.head
            if values == nil {
                head.begin(request.methodName.utf8.span, target)
            } else {
                head.begin(request.methodName.utf8.span, injected.target)
            }
            defer { head.reset() }
            let cookies = fields.hasCookies ? fields.cookies(for: target, to: client.plan.base.origin, now: now) : nil
            caller.writeFields(into: head, overriddenBy: fields, cookies: cookies)
            fields.write(into: head, keepingCredentials: request.keepsCredentials)
            if fields.hasSigners, !request.keepsCredentials,
                let error = sign(request, by: fields, of: client, into: head)
            {
                return abort(error)
            }
            guard head.isComplete else { throw .badFunctionArgument }
            machine.requestIsSent()
            sentAt = runtime.loop.now
            timer.arm(at: sentAt + client.responseDelay)
            if values == nil {
                try stream.start(request, head: head, target: target)
            } else {
                try stream.start(request, head: head, target: injected.target)
            }
        } catch {
            abort(ExchangeError(error, upstream: client.plan))
        }
    }

    private func endInjection() {
        isInjected = false
        body.undoChange()
        injected.erase()
    }

    /// Appends the signed fields to the request after all others. Returns an error if signing is not possible.
    private func sign(
        _ request: ExchangeRequest, by fields: SessionFields, of client: UpstreamClient, into head: FieldSink
    ) -> ExchangeError? {
        let read = body.readings.map { SigningRequest.Body.read($0) } ?? .unread
        do throws(LoginFailure) {
            sessions.checks = try fields.sign(
                signing(
                    at: client, body: request.hasBody ? read : .none, fields: head,
                    isInjected: fields.injections != nil)
            ) { head.append(name: $0.rawName.utf8.span, value: $1) }
            return nil
        } catch {
            return ExchangeError(error)
        }
    }

    /// Returns the request as signers see it.
    func signing(
        at client: UpstreamClient, body: SigningRequest.Body, fields: (any SigningFields)? = nil,
        isInjected: Bool = false
    ) -> SigningRequest {
        SigningRequest(
            method: request.methodName, origin: client.plan.base.origin,
            target: isInjected ? injected.target.text : target.text, body: body, now: runtime.wallClock(),
            fields: fields)
    }

    /// Continues to read the body for the digest that is needed before sending.
    private func readBody() {
        switch machine.bodyRead(body.readMore()) {
        case .wait: return
        case .send: send()
        case .readMore: timer.arm(at: runtime.loop.now)
        case .askCaller:
            // The caller has its own time limit.
            timer.disarm()
            caller?.exchangeWantsBody()
        case .refuse:
            if body.isReadForChange { return abort(ExchangeError(.bodyTooLong)) }
            guard let client, let fields = sessions.examinedFields else { return }
            do throws(LoginFailure) {
                // The signer may give a better reason.
                _ = try fields.sign(signing(at: client, body: .unread)) { _, _ in }
                abort(.bodyNotReplayable)
            } catch {
                abort(ExchangeError(error))
            }
        }
    }

    func releaseTransfer() {
        guard let stream else { return }
        self.stream = nil
        if handshake != nil { settleHandshake(after: stream.transfer) }
        transfer?.owner = nil
        transfer = nil
        upstreamTime &+= runtime.loop.now.nanoseconds(since: sentAt)
        stream.release()
    }
}
