// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import HTTPWire

/// Forwards the requests of one connection: runs the exchange and writes its response.
final class Forwarding: Service {
    /// Size in bytes up to which a piece of a response is copied. A longer one is swapped into the output, if the rest
    /// there is short as well.
    private static let copiedAtMost = 4096

    /// A strong reference, because each use of a weak or unowned one costs time. The connection releases its service when it
    /// closes.
    private let connection: any ServedConnection
    private let worker: Worker
    private var run: UpstreamRequest
    private var response = ForwardedResponse()
    /// The protocols that the present request offers to switch to.
    private var offer: UpgradeOffer?

    init(_ connection: any ServedConnection, worker: Worker) {
        self.connection = connection
        self.worker = worker
        run = UpstreamRequest(caller: connection.caller, worker: worker)
    }

    private var caller: AcceptedCaller { connection.caller }
    var exchange: Exchange? { run.running }

    // MARK: Requests

    func begin() {
        // Replies are delivered after the closure, because they release the head and its bytes.
        switch connection.withRequest({ admit($0, in: $1) }) {
        case .begun:
            connection.accept()
            // Bytes after a request for another protocol are never read as a request. They may be in the other protocol
            // already, from a caller who does not wait for the 101, and bytes that are data to one reader and a request
            // to another allow request smuggling. So the connection ends after any other response.
            if offer != nil { connection.endAfterRequest() }
            run.exchange?.start()
            run.tally.handedOver(by: worker.loop)
        case .answered(let answer):
            connection.deliver(answer)
        case .refused(let refusal):
            // The connection of a caller who is not allowed is closed.
            if refusal.code == .callerNotAllowed { connection.endAfterRequest() }
            refuse(refusal)
        case .withoutExchange(let refusal):
            refuse(refusal.reply, of: refusal.upstream)
        }
    }

    private enum Beginning {
        case begun
        case answered(LocalAnswer)
        case refused(LocalReply)
        case withoutExchange(UpstreamRequest.Refusal)
    }

    private func admit(_ request: RequestHead, in bytes: Span<UInt8>) -> Beginning {
        response.reset(
            isHead: request.method == .head, version: request.version, acceptsTrailers: request.acceptsTrailers)
        let caller = caller
        switch Admission.decide(
            request, in: bytes, plan: caller.listener, user: caller.user, isUnixSocket: caller.isUnixSocket)
        {
        case .refused(let refusal): return .refused(refusal)
        case .answered(let answer): return .answered(answer)
        case .admitted(let destination):
            do throws(UpstreamRequest.Refusal) {
                try run.admit(request, in: bytes, to: destination)
            } catch {
                return .withoutExchange(error)
            }
            forward(request, in: bytes)
            return .begun
        }
    }

    @inline(__always)
    private func forward(_ request: RequestHead, in bytes: Span<UInt8>) {
        let takesUpgrade = request.requestsUpgrade && run.upstream?.takesUpgrades == true
        offer = takesUpgrade ? UpgradeOffer(request, in: bytes) : nil
        // The expectation is forwarded, so that an unwanted body is not sent at all (RFC 9110 §10.1.1).
        var outbound = ExchangeRequest(
            method: request.method, otherMethod: request.method == .other ? bytes.text(request.methodRange) : "",
            framing: request.body,
            expectsContinue: request.expectsContinue && request.first(.expect)?.isNominated == false,
            keepsCredentials: run.terms.keepsCredentials, ownAuthorization: run.terms.ownAuthorization,
            isUpgrade: offer != nil, isAuthRequest: false)
        outbound.chunkedDataLength = run.chunkedDataLength(of: request, in: bytes)
        run.begin(outbound, request, in: bytes, for: self)
        if exchange?.decodesChunks == true { run.takeOffChunks() }
    }

    func refuse(_ reply: LocalReply) { refuse(reply, of: nil) }

    private func refuse(_ reply: LocalReply, of upstream: String?) {
        let id = run.id
        let local = run.recorded(reply, of: upstream, id: id)
        connection.recordAccess(reply, id: id, upstream: upstream)
        connection.deliver(local.answer(allow: local.status == 405 ? Admission.methods : nil))
    }

    var wantsBody: Bool { run.exchange?.wantsBody ?? false }

    func receiveBody(_ bytes: Span<UInt8>) { run.exchange?.receiveBody(bytes) }

    func receiveTrailer(_ line: FieldLine, in bytes: Span<UInt8>) {
        if run.terms.tokenField?.matches(line, in: bytes) == true { return }
        run.exchange?.receiveTrailer(line, in: bytes)
    }

    func receiveBodyEnd() { run.exchange?.receiveBodyEnd() }

    func resumeResponse() { run.exchange?.resumeResponse() }

    func cancel(isAnswered: Bool) {
        run.exchange?.cancel()
        if isAnswered { run.tally.isWhole = true }
    }

    func requestEnded() { run.release() }

    func close() { run.close() }

    func becomeTunnel() { run.close(isTunnel: true) }
}

// The response of the exchange.
extension Forwarding: ExchangeCaller {
    var identity: CallerIdentity? { caller.identity }

    var hasConditions: Bool {
        connection.withRequest { request, _ in
            request.first(.range) != nil || request.first(.ifNoneMatch) != nil
                || request.first(.ifModifiedSince) != nil
        }
    }

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        guard let upstream = run.upstream else { return }
        // The response's authentication fields belong to the owner of the credentials that were sent.
        response.hidesAuthentication = !sessions.isEmpty && !run.terms.keepsCredentials
        connection.withRequest { request, bytes in
            ForwardedRequest.write(
                request, in: bytes, authority: upstream.authority, terms: run.terms, overriddenBy: sessions,
                cookies: cookies, to: fields)
            if run.terms.decodesChunks {
                for checksum in exchange?.chunkChecksums ?? [] {
                    fields.append(name: checksum.name.span, value: checksum.value.span)
                }
            }
            guard let offer else { return }
            // `Connection` and `Upgrade` are hop-by-hop, so they were not forwarded above.
            var value = ByteQueue()
            offer.write(bytes, to: &value)
            fields.append(name: "Connection", value: "Upgrade")
            value.withSpan { fields.append(name: "Upgrade", value: $0) }
        }
    }

    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {
        if head.status == 100 { connection.continueIsPassedOn() }
        connection.write { response.writeInterim(head, in: bytes, to: &$0) }
    }

    func exchangeDelivers(headOf transfer: Transfer) {
        let answer = transfer.answer
        worker.log.answered(exchange?.upstreamName ?? "")
        if answer.first(.setCookie) != nil { response.held = exchange?.heldCookies ?? HeldCookies() }
        record(status: answer.status)
        // A caller that sends its body nevertheless must learn that it is not read (RFC 9112 §9.6).
        if transfer.leavesBody { connection.endAfterRequest() }
        var keepsAlive = connection.keepsAlive(after: answer.status)
        connection.write { output in
            keepsAlive = transfer.head.withSpan {
                response.writeHead(
                    answer, in: $0, keepsAlive: keepsAlive, to: &output, date: worker.date, addresses: reverseMapping)
            }
        }
        connection.responseBegan(keepsAlive: keepsAlive, endsWithConnection: response.endsWithConnection)
    }

    private func record(status: Int) {
        run.tally.status = status
        connection.accessBuilder?.status = status
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        connection.write { output in
            // More than a window waits already: data left in the transfer makes libcurl pause.
            guard output.count < CallerStream.outputWindow else { return }
            let isCopied =
                !output.isEmpty && output.count < Self.copiedAtMost || transfer.body.count < Self.copiedAtMost
            let framing = response.framing
            if isCopied || !framing.passesBodyAsItIs {
                connection.accessBuilder?.bytes += transfer.body.count
                transfer.body.withSpan { framing.write($0, to: &output) }
                transfer.body.removeAll(keepingCapacity: Transfer.bodyCapacity)
            } else if output.isEmpty {
                connection.accessBuilder?.bytes += transfer.body.count
                swap(&output, &transfer.body)
            }
            // Otherwise the body waits in the transfer until the long piece is sent, and then needs no copy.
        }
    }

    func exchangeDelivers(trailersOf transfer: Transfer) {
        guard response.takesTrailers else { return }
        connection.write { output in
            response.beginTrailers(to: &output)
            transfer.forEachTrailer { ResponseWriter.field($0, $1, to: &output) }
            response.endTrailers(to: &output)
        }
    }

    func exchangeHasAll() {
        connection.write { response.writeEnd(to: &$0) }
        connection.responseIsWhole()
    }

    func exchangeEnded() {
        connection.write { response.writeEnd(to: &$0) }
        run.tally.isWhole = true
        connection.requestEnded(isBroken: false)
    }

    func exchangeFailed(_ error: ExchangeError) { refuse(run.failed(error)) }

    func exchangeBroke(_ error: ExchangeError) {
        run.tally.isBroken = true
        _ = run.failed(error)
        // Only a reset cannot be mistaken for the end of the body.
        if response.endsWithConnection { return connection.reset() }
        // The received part is sent, then the connection ends: the framing shows that the message is incomplete (RFC 9112 §8).
        connection.endAfterRequest()
        connection.requestEnded(isBroken: true)
    }

    func exchangeWantsBody() { connection.bodyIsWanted() }

    func exchangeSwitches(headOf transfer: Transfer, to upstream: UpstreamConnection) throws(WireError) {
        guard let offer else { throw WireError(upstream: .switchInvalid) }
        response.held = exchange?.heldCookies ?? HeldCookies()
        var failure: WireError?
        connection.write { output in
            do throws(WireError) {
                try connection.withRequest { (_, request) throws(WireError) in
                    try transfer.head.withSpan { (bytes) throws(WireError) in
                        try response.writeSwitch(
                            transfer.answer, in: bytes, to: offer, askedBy: request, to: &output,
                            addresses: reverseMapping)
                    }
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        record(status: transfer.answer.status)
        run.tally.isWhole = true
        run.endTally()
        connection.switchProtocol(to: upstream)
    }

    /// Returns the mapping from the upstream's addresses to the caller's. It is made only for responses with an address or a
    /// cookie.
    private func reverseMapping() -> ReverseMapping? {
        guard let upstream = run.upstream else { return nil }
        return connection.withRequest {
            ReverseMapping(for: caller, of: $0, in: $1, stripped: run.stripped, from: upstream, worker: worker)
        }
    }
}
