// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
public import HTTPTypes
internal import HTTPWire

/// The outcome of a request for another protocol.
public enum UpgradeOutcome: Sendable {
    /// The server answered without switching.
    case response(ClientResponse)
    /// The connection has switched to the other protocol.
    case switched(ClientTunnel)
}

/// A connection with another protocol, such as WebSocket, as raw bytes in both directions.
///
/// Ends with `close()`, when released, or without any traffic for `ClientConfiguration.Timeouts.idle`.
public final class ClientTunnel: Sendable {
    /// The head of the 101.
    public let head: HTTPResponse
    /// The incoming bytes, until the server ends its side. Slowed down while unread.
    public let incoming: ResponseBody
    private let life: ClientLife
    private let number: UInt64

    init(_ response: ClientResponse, life: ClientLife, number: UInt64) {
        head = response.head
        incoming = response.body
        self.life = life
        self.number = number
    }

    deinit { close() }

    /// Sends `bytes`, and returns once the system has accepted them; a slow server delays this.
    ///
    /// Throws `unreachable` if the connection has ended, `shutDown` if the client has.
    public func send(_ bytes: some Sequence<UInt8>) async throws(ClientError) {
        let bytes = Array(bytes)
        let number = number
        guard !bytes.isEmpty else { return }
        let isSent = await withCheckedContinuation { continuation in
            let isTaken = life.perform { site in
                guard let exchange = site.exchange(number) else { return continuation.resume(returning: false) }
                exchange.send(bytes, continuation)
            } else: {
                continuation.resume(returning: false)
            }
            if !isTaken { continuation.resume(returning: false) }
        }
        guard isSent else { throw ClientError(.unreachable, detail: "The connection has ended; nothing can be sent.") }
    }

    /// Ends the connection.
    public func close() {
        let number = number
        _ = life.perform { $0.exchange(number)?.endTunnel() }
    }
}

extension ChallengeClient {
    /// Requests another protocol on the connection, such as `websocket` (RFC 9110 §7.8).
    ///
    /// The fields that the protocol needs, such as `Sec-WebSocket-Key`, are set by the request, and the program has to
    /// check the server's. A challenge to the handshake is answered as for any other request. Throws the errors of
    /// `send`.
    public func upgrade(
        _ request: HTTPRequest, to protocolName: String, timeout: Duration? = nil
    ) async throws(ClientError) -> UpgradeOutcome {
        var handshake = try ClientRequest(request, body: .none, timeout: timeout)
        handshake.upgrade = protocolName
        let (response, number) = try await perform(handshake)
        guard response.status.code == 101 else { return .response(response) }
        return .switched(ClientTunnel(response, life: life, number: number))
    }
}

/// The bytes in both directions after a 101, on the loop.
///
/// Incoming bytes are appended to the response's pipe as long as it has room. Outgoing pieces are sent one at a time.
/// Without any traffic for `timeouts.idle`, the tunnel ends.
final class TunnelPump: ReadinessHandler {
    /// The largest read, in bytes.
    private static let portion = 16 * 1024
    /// The number of reads before other work gets its turn.
    private static let rounds = 8

    private let connection: UpstreamConnection
    private let pipe: BodyPipe
    private let loop: EventLoop
    private let timer: LazyTimer
    private let onEnd: () -> Void
    private var output = ByteQueue()
    private var input = ByteQueue()
    private var senders: [(bytes: [UInt8], done: CheckedContinuation<Bool, Never>)] = []
    private var sender: CheckedContinuation<Bool, Never>?
    private var hasEnded = false
    private var isOver = false
    private var isNoted = false

    /// Creates a pump on `connection`; `onEnd` is called once at the end of both sides. Nothing is moved before `pump`.
    init(_ connection: UpstreamConnection, pipe: BodyPipe, on loop: EventLoop, onEnd: @escaping () -> Void) {
        self.connection = connection
        self.pipe = pipe
        self.loop = loop
        self.onEnd = onEnd
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            end(
                .failure(ClientError(.timedOut, detail: "The tunnel had no traffic for `timeouts.idle`.")),
                resetting: true)
        }
        timer.arm(at: loop.now + connection.idleDelay)
        swap(&input, &connection.received)
    }

    /// Enqueues `bytes`; `done` is resumed once with true after sending, or with false.
    func send(_ bytes: [UInt8], _ done: CheckedContinuation<Bool, Never>) {
        guard !isOver else { return done.resume(returning: false) }
        senders.append((bytes, done))
        pump()
    }

    func ready(_ fd: Int32, _ events: Readiness) { pump() }

    /// Moves as many bytes as possible. The pump may be over on return.
    func pump() {
        guard !isOver else { return }
        guard transmit(), receive() else {
            return end(
                .failure(ClientError(.unreachable, detail: "The server closed the connection unexpectedly.")),
                resetting: true)
        }
        guard !isOver else { return }
        var interest: Interest = []
        if !hasEnded, pipe.hasRoom { interest.insert(.read) }
        if !output.isEmpty { interest.insert(.write) }
        connection.watch(for: interest, handler: self)
    }

    /// Ends the tunnel from either side.
    func end(_ result: Result<Void, ClientError>, resetting: Bool = false) {
        guard !isOver else { return }
        isOver = true
        timer.cancel()
        connection.close(resetting: resetting)
        sender?.resume(returning: false)
        sender = nil
        for waiting in senders { waiting.done.resume(returning: false) }
        senders = []
        pipe.finish(result)
        onEnd()
    }

    /// Sends enqueued bytes. Returns false if the connection is lost.
    private func transmit() -> Bool {
        while true {
            if output.isEmpty {
                sender?.resume(returning: true)
                sender = nil
                guard !senders.isEmpty else { return true }
                let next = senders.removeFirst()
                output.append(next.bytes)
                sender = next.done
            }
            let before = output.count
            guard (try? connection.send(&output)) != nil else { return false }
            if output.count < before { timer.arm(at: loop.now + connection.idleDelay) }
            guard output.isEmpty else { return true }
        }
    }

    private func receive() -> Bool {
        for _ in 0..<Self.rounds {
            if !input.isEmpty {
                guard pipe.hasRoom else { return true }
                pipe.put(input.copy())
                input.removeAll(keepingCapacity: Self.portion)
            }
            guard !hasEnded else { return true }
            switch try? connection.receive(into: &input, atMost: Self.portion) {
            case .bytes: timer.arm(at: loop.now + connection.idleDelay)
            case .nothing: return true
            case .end:
                hasEnded = true
                pipe.finish(.success(()))
                return true
            case nil: return false
            }
        }
        // No event follows for bytes waiting within TLS.
        if !isNoted {
            isNoted = true
            let bound = LoopBound(self, to: loop)
            loop.execute {
                bound.value.isNoted = false
                bound.value.pump()
            }
        }
        return true
    }
}
