// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPTypes
internal import HTTPWire

/// One request of a program and its response: the program's side of an `Exchange`, on the loop.
final class ClientExchange {
    /// How much of the body is handed to the exchange at once.
    private static let portion = 16 * 1024

    /// Where the request's body comes from.
    private enum Source {
        /// No more is to come.
        case done
        /// From here on, and then the end or the next piece, as `feeder` says.
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
    /// Resumed once: by the head, or by what comes in its place.
    private var answer: CheckedContinuation<Result<ClientResponse, ClientError>, Never>?
    private let deadline: LazyTimer
    private let bodyTimer: LazyTimer
    private var source = Source.done
    private var left: UInt64?
    /// Whose turn it is when there is room for the next piece.
    private var feeder: CheckedContinuation<Bool, Never>?
    private var hasEnded = false
    private var tunnel: TunnelPump?
    /// What hands over a body that comes in pieces.
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
        let outbound = ExchangeRequest(
            method: RequestMethod(method.span, ByteRange(start: 0, end: method.count)), otherMethod: request.method,
            framing: framing, keepsCredentials: request.fields[.authorization] != nil,
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

    /// Hands over as much of the body as there is room for.
    private func feed() {
        guard let exchange, !hasEnded else { return }
        while case .bytes(let bytes, let start) = source, exchange.wantsBody {
            let end = min(bytes.count, start + Self.portion)
            // First, for the exchange may ask for more from within.
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

    /// The next piece of a body that comes in pieces.
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

    /// The sequence has ended, or thrown.
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

    // MARK: What comes of it

    /// What the reader of the response does.
    func hear(_ call: BodyPipe.Call) {
        switch call {
        case .room: if let tunnel { tunnel.pump() } else { exchange?.resumeResponse() }
        case .broken: fail(.cancelled)
        }
    }

    /// Gives the request up, and says why.
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

    /// The connection has the other protocol now; the response's body is what comes over it.
    func switched(to connection: UpstreamConnection, head: HTTPResponse) {
        let tunnel = TunnelPump(connection, pipe: pipe, on: site.loop) { [unowned self] in
            self.tunnel = nil
            finish()
        }
        self.tunnel = tunnel
        deliver(head)
        tunnel.pump()
    }

    /// Sends on the connection; `done` as `TunnelPump.send` has it.
    func send(_ bytes: [UInt8], _ done: CheckedContinuation<Bool, Never>) {
        if let tunnel { tunnel.send(bytes, done) } else { done.resume(returning: false) }
    }

    /// The program has done with the connection.
    func endTunnel() { tunnel?.end(.failure(.cancelled)) }
}

extension ClientExchange {
    /// There is room for more of the request's body.
    func wantsBody() { feed() }

    /// The sessions whose cookies are not the program's.
    var heldCookies: HeldCookies { exchange?.heldCookies ?? HeldCookies() }
}
