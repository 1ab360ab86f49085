// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire
internal import Redis
internal import Secrets

/// One connection to the session store: sends commands, and receives replies in the same order. It is used once.
final class RedisConnection: TransferDelegate, ReadinessHandler {
    /// Limits of the commands that wait for replies, and of the bytes that wait for the socket.
    static let maxPending = 1024
    static let maxBytes = 8 << 20

    /// Bytes received at once, and receptions before others get their turn.
    private static let portion = 16 * 1024
    private static let rounds = 8

    private struct PendingCommand {
        /// Number of replies that are missing.
        var replies: Int
        var deadline: LoopInstant
        let completion: (Reply?) -> Void
    }

    /// Called once if the connection is lost or a reply makes no sense. Not called after `close`.
    var onEnd: ((RedisStoreError) -> Void)?
    /// Called for unrequested replies; returns false for an impossible one. Not set if such replies are not expected.
    var onMessage: ((Reply) -> Bool)?

    private let loop: EventLoop
    private let connection: UpstreamConnection
    private let replyTimeout: LoopDelay
    private let timeoutWords: String
    private let timer: LazyTimer
    private var reader = ReplyReader()
    /// Bytes being sent, and those that follow. Nothing may be appended to the first (see `UpstreamConnection.send`).
    private var output = ByteQueue()
    private var next = ByteQueue()
    private var input = ByteQueue()
    private var pending: [PendingCommand] = []
    /// Index of the first pending command without all its replies.
    private var first = 0
    private var isOpen = false
    private var isOver = false
    private var isTransferScheduled = false
    private var holdsSecret = false
    private var hasReceived = false

    /// A connection to the session store of `plan`, not yet opened.
    init(_ plan: RedisStorePlan, loop: EventLoop, driver: CurlDriver) throws(CurlError) {
        self.loop = loop
        replyTimeout = LoopDelay(plan.replyTimeout)
        timeoutWords = "it does not answer within \(plan.replyTimeout)"
        connection = try .sessionStore(plan, loop: loop, driver: driver)
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in
            guard let self else { return }
            end(RedisStoreError(timeoutWords))
        }
    }

    /// Connects; commands may be sent before that is done.
    func open() throws(CurlError) { try connection.open(telling: self) }

    /// Sends user name and password, as the first of all commands.
    func authenticate(user: Secret?, password: Secret, _ completion: @escaping (Reply?) -> Void) {
        let arguments = (user.map { [$0] } ?? []) + [password]
        // In one piece of memory, which is wiped after it was sent.
        next.reserve(64 + arguments.reduce(0) { $0 + $1.count + 32 })
        next.append("*\(arguments.count + 1)\r\n$4\r\nAUTH\r\n")
        for argument in arguments {
            next.append("$\(argument.count)\r\n")
            argument.withBytes { next.append($0) }
            next.append("\r\n" as StaticString)
        }
        holdsSecret = true
        swap(&output, &next)
        expectReplies(1, completion)
    }

    /// Sends a command. `completion` gets each reply, or `nil` once if they will not come; never from within this call.
    func send(_ command: Command, replies: Int = 1, _ completion: @escaping (Reply?) -> Void) {
        guard !isOver, pending.count - first < Self.maxPending,
            command.bytes.count <= Self.maxBytes - output.count - next.count
        else {
            afterThisTurn { _ in completion(nil) }
            return
        }
        next.append(command.bytes)
        expectReplies(replies, completion)
    }

    private func expectReplies(_ replies: Int, _ completion: @escaping (Reply?) -> Void) {
        // libcurl limits the time of the connect itself.
        let deadline = isOpen ? loop.now + replyTimeout : .never
        if isOpen, first == pending.count { timer.arm(at: deadline) }
        pending.append(PendingCommand(replies: replies, deadline: deadline, completion: completion))
        scheduleTransfer()
    }

    /// Closes the connection; pending commands are answered with `nil`.
    func close() {
        onEnd = nil
        end(RedisStoreError(""))
    }

    /// Closes the connection and calls `onEnd` with `reason`.
    func end(_ reason: RedisStoreError) {
        guard !isOver else { return }
        isOver = true
        timer.cancel()
        connection.close()
        output.erase()
        next.erase()
        let unanswered = pending[first...]
        pending = []
        first = 0
        let onEnd = onEnd
        (self.onEnd, onMessage) = (nil, nil)
        onEnd?(reason)
        for command in unanswered { command.completion(nil) }
    }

    // MARK: Events

    /// Takes over the connection from libcurl, or ends if there is none.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard !isOver else { return }
        if let error {
            return end(RedisStoreError(TransferFailure(error, of: handle, isProxied: false)))
        }
        guard connection.take() else { return end(RedisStoreError("the connection was lost")) }
        isOpen = true
        for index in pending.indices { pending[index].deadline = loop.now + replyTimeout }
        if !pending.isEmpty { timer.arm(at: loop.now + replyTimeout) }
        transfer()
    }

    func ready(_ fd: Int32, _ events: Readiness) { transfer() }

    /// Sends and receives as much as the socket allows. The connection may be closed when this returns.
    private func transfer() {
        guard isOpen, !isOver else { return }
        guard transmit(), receive() else { return end(loss) }
        guard !isOver else { return }
        connection.watch(for: output.isEmpty && next.isEmpty ? .read : [.read, .write], handler: self)
    }

    /// Reason for the loss of the connection.
    private var loss: RedisStoreError {
        // In TLS 1.3 a server refuses a missing client certificate after the client's handshake (RFC 8446 §4.4.2.4).
        connection.isSecure && !hasReceived
            ? RedisStoreError(
                "it closed the connection without an answer: it may want a client certificate (`sessions.tls`)")
            : RedisStoreError("the connection was lost")
    }

    /// Returns false if the connection is lost.
    private func transmit() -> Bool {
        while true {
            if output.isEmpty {
                if holdsSecret { output.erase() }
                holdsSecret = false
                output.removeAll(keepingCapacity: Self.portion)
                guard !next.isEmpty else { return true }
                swap(&output, &next)
            }
            guard (try? connection.send(&output)) != nil else { return false }
            guard output.isEmpty else { return true }
        }
    }

    /// Returns false if the connection is lost.
    private func receive() -> Bool {
        for _ in 0..<Self.rounds {
            switch try? connection.receive(into: &input, atMost: Self.portion) {
            case .bytes:
                hasReceived = true
                input.withSpan { reader.feed($0) }
                input.removeAll(keepingCapacity: Self.portion)
                guard readReplies() else { return true }
            case .nothing: return true
            case .end, nil: return false
            }
        }
        // Bytes that wait within TLS cause no event.
        scheduleTransfer()
        return true
    }

    /// Delivers complete replies; returns false if the connection was closed.
    private func readReplies() -> Bool {
        do throws(ReplyError) {
            while let reply = try reader.next() {
                guard deliver(reply) else { end(RedisStoreError("it sent a reply without a request")); return false }
                if isOver { return false }
            }
            return true
        } catch {
            end(RedisStoreError("\(error)"))
            return false
        }
    }

    private func deliver(_ reply: Reply) -> Bool {
        if onMessage?(reply) == true { return true }
        guard pending.indices.contains(first) else { return false }
        pending[first].replies -= 1
        let completion = pending[first].completion
        if pending[first].replies == 0 { removeFirst() }
        completion(reply)
        return true
    }

    private func removeFirst() {
        first += 1
        if first == pending.count {
            pending.removeAll(keepingCapacity: first <= 64)
            first = 0
            timer.disarm()
        } else {
            if first >= 256 {
                pending.removeFirst(first)
                first = 0
            }
            timer.arm(at: pending[first].deadline)
        }
    }

    /// Schedules a transfer at the end of this turn. All its commands go out together.
    private func scheduleTransfer() {
        guard !isTransferScheduled else { return }
        isTransferScheduled = true
        afterThisTurn { connection in
            connection.isTransferScheduled = false
            connection.transfer()
        }
    }

    private func afterThisTurn(_ body: @escaping (RedisConnection) -> Void) {
        let bound = LoopBound((connection: self, body: body), to: loop)
        loop.execute { bound.value.body(bound.value.connection) }
    }

    // libcurl makes the connection and transfers nothing.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { false }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { true }
}

extension UpstreamConnection {
    /// Returns a connection to the session store of `plan`, not yet opened.
    fileprivate static func sessionStore(
        _ plan: RedisStorePlan, loop: EventLoop, driver: CurlDriver
    ) throws(CurlError) -> UpstreamConnection {
        let origin = plan.origin
        let easy = try EasyHandle()
        var connections = plan.connections
        connections.version = .http1
        try connections.apply(to: easy, for: origin)
        // The protocol has no ALPN name, and some proxies refuse that of another.
        try easy.set(.alpn, false)
        try easy.set(.url, "\(origin)/")
        if case .socket(let path) = plan.endpoint { try easy.set(.unixSocketPath, path) }
        try easy.set(.connectTimeout, plan.connectTimeout)
        try easy.set(.tcpKeepAlive, true)
        try easy.connectOnly()
        return UpstreamConnection(
            easy: easy, driver: driver, loop: loop, idleDelay: LoopDelay(plan.keepAlive),
            isSecure: origin.scheme == .https)
    }
}
