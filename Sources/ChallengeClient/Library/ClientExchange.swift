// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

/// One request of a program and its response: the program's side of an `Exchange`, on the loop.
final class ClientExchange {
    /// The bytes passed to the exchange at once.
    private static let portion = 16 * 1024

    /// The source of the request's body.
    private enum Source {
        /// The body is complete.
        case done
        /// Bytes from that position on; then the end, or the next piece from `feeder`.
        case bytes([UInt8], from: Int)
        /// The next piece is awaited.
        case waiting
    }

    let request: ClientRequest
    let pipe: BodyPipe
    private let site: ClientSite
    private let life: ClientLife
    private let number: UInt64
    private var exchange: Exchange?
    /// Resumed once, by the head or an error.
    private var answer: CheckedContinuation<Result<ClientResponse, ClientError>, Never>?
    private let deadline: LazyTimer
    private let bodyTimer: LazyTimer
    private var source = Source.done
    private var left: UInt64?
    /// The producer that waits for room for the next piece.
    private var feeder: CheckedContinuation<Bool, Never>?
    private var hasEnded = false
    private var tunnel: TunnelPump?
    /// The task that passes on a body in pieces.
    var pieces: Task<Void, Never>?

    init(
        _ request: ClientRequest, number: UInt64, pipe: BodyPipe, site: ClientSite, life: ClientLife,
        answer: CheckedContinuation<Result<ClientResponse, ClientError>, Never>
    ) {
        self.request = request
        self.number = number
        self.pipe = pipe
        self.site = site
        self.life = life
        self.answer = answer
        deadline = LazyTimer(loop: site.loop)
        bodyTimer = LazyTimer(loop: site.loop)
        deadline.onExpiry = { [unowned self] in
            fail(
                ClientError(
                    .timedOut, detail: "\(self.request.origin) did not answer within \(self.request.timeout ?? .zero).")
            )
        }
        bodyTimer.onExpiry = { [unowned self] in
            fail(
                ClientError(
                    .requestBody,
                    detail: "The next piece of the request's body did not come within "
                        + "\(self.site.timeouts.requestBody) (`timeouts.requestBody`)."))
        }
    }

    /// Sends the request to the server of `client`.
    func start(to client: UpstreamClient) {
        let exchange = Exchange(runtime: site.runtime, caller: self)
        self.exchange = exchange
        switch request.body.content {
        case .none: source = .done
        case .bytes(let bytes):
            left = UInt64(bytes.count)
            source = bytes.isEmpty ? .done : .bytes(bytes, from: 0)
        case .pieces(let length, _):
            left = length
            source = .waiting
        }
        let method = Array(request.method.utf8)
        let own = request.fields[.authorization].map { OwnAuthorization($0.utf8.span) } ?? .none
        let outbound = ExchangeRequest(
            method: RequestMethod(method.span, ByteRange(start: 0, end: method.count)), otherMethod: request.method,
            framing: framing, keepsCredentials: own != .none, ownAuthorization: own,
            isUpgrade: request.upgrade != nil)
        if let timeout = request.timeout { deadline.arm(at: site.loop.now + timeout) }
        exchange.begin(outbound, path: request.path.utf8.span, to: client)
        exchange.start()
        feed()
    }

    private var framing: BodyFraming {
        switch request.body.content {
        case .none: .none
        case .bytes(let bytes): .length(UInt64(bytes.count))
        case .pieces(let length?, _): .length(length)
        case .pieces(nil, _): .chunked
        }
    }

    // MARK: The request's body

    /// Passes on as much of the body as there is room for.
    private func feed() {
        guard let exchange, !hasEnded else { return }
        while case .bytes(let bytes, let start) = source, exchange.wantsBody {
            let end = min(bytes.count, start + Self.portion)
            // Set first, as the exchange may ask for more from within.
            source = end < bytes.count ? .bytes(bytes, from: end) : .waiting
            exchange.receiveBody(bytes.span.extracting(start..<end))
            guard !hasEnded else { return }
        }
        guard case .waiting = source else {
            bodyTimer.disarm()
            return
        }
        if case .bytes = request.body.content {
            source = .done
            exchange.receiveBodyEnd()
            return
        }
        if let feeder {
            self.feeder = nil
            feeder.resume(returning: true)
        }
        bodyTimer.arm(at: site.loop.now + site.timeouts.requestBody)
    }

    /// Receives the next piece of a body in pieces.
    func take(_ piece: [UInt8], _ feeder: CheckedContinuation<Bool, Never>) {
        guard !hasEnded else { return feeder.resume(returning: false) }
        if let left {
            guard left >= UInt64(piece.count) else {
                feeder.resume(returning: false)
                return fail(
                    ClientError(.requestBody, detail: "The request's body is longer than its `length` says."))
            }
            self.left = left - UInt64(piece.count)
        }
        self.feeder = feeder
        source = piece.isEmpty ? .waiting : .bytes(piece, from: 0)
        feed()
    }

    /// Ends a body in pieces, complete or with an error.
    func endPieces(_ error: (any Error)?) {
        guard !hasEnded else { return }
        if let error {
            return fail(
                ClientError(.requestBody, detail: "The request's body ended with an error: \(type(of: error))."))
        }
        if let left, left > 0 {
            return fail(ClientError(.requestBody, detail: "The request's body is shorter than its `length` says."))
        }
        source = .done
        bodyTimer.disarm()
        exchange?.receiveBodyEnd()
    }

    // MARK: The response

    /// Handles a message of the response's reader.
    func handle(_ call: BodyPipe.Call) {
        switch call {
        case .room: if let tunnel { tunnel.pump() } else { exchange?.resumeResponse() }
        case .broken: fail(.cancelled)
        }
    }

    /// Ends the request with an error.
    func fail(_ error: ClientError) {
        guard !hasEnded else { return }
        end(error)
        answer?.resume(returning: .failure(error))
        answer = nil
        pipe.finish(.failure(error))
    }

    func deliver(_ head: HTTPResponse) {
        deadline.cancel()
        answer?.resume(returning: .success(ClientResponse(head: head, body: ResponseBody(pipe, life))))
        answer = nil
    }

    func finish() {
        guard !hasEnded else { return }
        end()
        pipe.finish(.success(()))
    }

    private func end(_ error: ClientError = .cancelled) {
        hasEnded = true
        deadline.cancel()
        bodyTimer.cancel()
        feeder?.resume(returning: false)
        feeder = nil
        pieces?.cancel()
        source = .done
        exchange?.close()
        exchange = nil
        tunnel?.end(.failure(error))
        tunnel = nil
        site.forget(number)
    }

    // MARK: Another protocol

    /// Continues with the other protocol; the response's body is the incoming data.
    func switched(to connection: UpstreamConnection, head: HTTPResponse) {
        let tunnel = TunnelPump(connection, pipe: pipe, on: site.loop) { [unowned self] in
            self.tunnel = nil
            finish()
        }
        self.tunnel = tunnel
        deliver(head)
        tunnel.pump()
    }

    /// Sends on the connection; `done` is resumed as in `TunnelPump.send`.
    func send(_ bytes: [UInt8], _ done: CheckedContinuation<Bool, Never>) {
        if let tunnel { tunnel.send(bytes, done) } else { done.resume(returning: false) }
    }

    /// Ends the connection at the program's request.
    func endTunnel() { tunnel?.end(.failure(.cancelled)) }
}

extension ClientExchange {
    /// Passes on more of the request's body, as there is room.
    func wantsBody() { feed() }

    /// The cookies in the response that belong to sessions.
    var heldCookies: HeldCookies { exchange?.heldCookies ?? HeldCookies() }
}

// The calls of the exchange: fields of the request, and the response.
extension ClientExchange: ExchangeCaller {
    /// The fields that only the client may set on the connection, including framing (RFC 9110 §7.6.1).
    private static let own: Set<HTTPField.Name> = [
        .connection, .contentLength, .expect, .transferEncoding, .upgrade, .te, .trailer,
    ]

    func writeFields(
        into fields: FieldSink, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) {
        fields.append(name: "Host", value: request.origin.authority.utf8.span)
        var lines: [[UInt8]] = []
        request.fields.forEachLine { field, value in
            if Self.own.contains(field) { return }
            let name = Array(field.canonicalName.utf8)
            let kind = FieldName(name.span, ByteRange(start: 0, end: name.count))
            if kind == .host || kind.isHopByHop { return }
            // The program's own field is sent, not a session's.
            if field == .authorization { return fields.append(name: "Authorization", value: value.span) }
            if sessions.override(kind, named: name.span) { return }
            if field == .cookie, cookies != nil { return lines.append(value) }
            let isLimited = field == .acceptEncoding && sessions.limitsCodings
            let sent =
                isLimited ? Array(ReadableCodings.among(String(decoding: value, as: UTF8.self)).utf8) : value
            fields.append(name: field.rawName.utf8.span, value: sent.span)
        }
        cookies?.write(mergedWith: lines, to: fields)
        if let upgrade = request.upgrade {
            fields.append(name: "Connection", value: "Upgrade")
            fields.append(name: "Upgrade", value: upgrade.utf8.span)
        }
    }

    /// True if the request has `Range` or a precondition.
    var hasConditions: Bool {
        let conditions: [HTTPField.Name] = [
            .range, .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange,
        ]
        return conditions.contains { request.fields.contains($0) }
    }

    func exchangeDelivers(headOf transfer: Transfer) { deliver(head(of: transfer)) }

    private func head(of transfer: Transfer) -> HTTPResponse {
        let held = heldCookies
        return transfer.head.withSpan { bytes in
            var response = HTTPResponse(status: .init(code: transfer.answer.status))
            for line in transfer.answer.fields where !line.isHopByHop {
                if held.contains(line) { continue }
                guard let name = HTTPField.Name(bytes.text(line.name)) else { continue }
                response.headerFields.append(HTTPField(name: name, value: bytes.text(line.value)))
            }
            return response
        }
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        guard pipe.hasRoom else { return }
        pipe.put(transfer.body.copy())
        transfer.body.removeAll(keepingCapacity: Transfer.bodyCapacity)
    }

    func exchangeEnded() { finish() }

    /// Ends the response, while the request may still be sent.
    func exchangeHasAll() { pipe.finish(.success(())) }

    func exchangeFailed(_ error: ExchangeError) { fail(ClientError(error)) }

    func exchangeBroke(_ error: ExchangeError) { fail(ClientError(error)) }

    func exchangeWantsBody() { wantsBody() }

    /// Accepts only the requested protocol (RFC 9110 §15.2.2).
    func exchangeSwitches(headOf transfer: Transfer, to connection: UpstreamConnection) throws(WireError) {
        let offered = transfer.head.withSpan { bytes in
            transfer.answer.fields.filter { $0.kind == .upgrade }.map { bytes.text($0.value).lowercased() }
        }
        guard let wanted = request.upgrade?.lowercased(), offered == [wanted] else {
            throw WireError(upstream: .switchInvalid)
        }
        switched(to: connection, head: head(of: transfer))
    }

    /// Ignores interim responses.
    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {}

    /// Ignores trailers.
    func exchangeDelivers(trailersOf transfer: Transfer) {}

    /// `nil`, because the caller is the program itself.
    var identity: CallerIdentity? { nil }
}
