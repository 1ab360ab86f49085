// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import EventLoop
internal import HTTPWire
internal import Redis
internal import Secrets

/// One connection to the session engine: commands out, replies in, in the same order. It is used once; whoever wants another one makes
/// another one.
final class EngineLine: TransferDelegate, ReadinessHandler {
    /// How many commands may wait for their replies, and how many bytes for the socket.
    static let mostWaiting = 1024
    static let mostBytes = 8 << 20

    /// How much is received at once, in bytes, and how often before others get their turn.
    private static let portion = 16 * 1024
    private static let rounds = 8

    private struct Waiting {
        /// How many replies there will be to the command.
        var replies: Int
        var deadline: LoopInstant
        let answered: (Reply?) -> Void
    }

    /// Told once, when the connection is lost or what comes makes no sense; not after `close`.
    var onEnd: ((EngineComplaint) -> Void)?
    /// Told of what nobody has asked for, and whether that can be; without it there is no such thing.
    var onNews: ((Reply) -> Bool)?

    private let loop: EventLoop
    private let connection: UpstreamConnection
    private let patience: LoopDelay
    private let patienceWords: String
    private let timer: LazyTimer
    private var reader = ReplyReader()
    /// What is being sent, from its front; and what goes after it. (Nothing may be appended to the first, see
    /// `UpstreamConnection.send`.)
    private var output = ByteQueue()
    private var next = ByteQueue()
    private var input = ByteQueue()
    private var waiting: [Waiting] = []
    /// Where the first of `waiting` stands that has not been answered.
    private var first = 0
    private var isOpen = false
    private var isOver = false
    private var isNoted = false
    private var holdsSecret = false
    /// True if anything has come.
    private var hasHeard = false

    /// A line to the engine of `plan`.
    init(_ plan: RedisEnginePlan, loop: EventLoop, driver: CurlDriver) throws(CurlError) {
        self.loop = loop
        patience = LoopDelay(plan.patience)
        patienceWords = "it does not answer within \(plan.patience)"
        connection = try .engine(plan, loop: loop, driver: driver)
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [weak self] in
            guard let self else { return }
            end(EngineComplaint(patienceWords))
        }
    }

    /// Connects. What is sent before that is done goes afterwards.
    func open() throws(CurlError) { try connection.open(telling: self) }

    /// Sends the password, and the user's name where there is one; as the first of all commands.
    func authenticate(user: Secret?, password: Secret, _ answered: @escaping (Reply?) -> Void) {
        let arguments = (user.map { [$0] } ?? []) + [password]
        // In one piece of memory, which is wiped when it has gone.
        next.reserve(64 + arguments.reduce(0) { $0 + $1.count + 32 })
        next.append("*\(arguments.count + 1)\r\n$4\r\nAUTH\r\n")
        for argument in arguments {
            next.append("$\(argument.count)\r\n")
            argument.withBytes { next.append($0) }
            next.append("\r\n" as StaticString)
        }
        holdsSecret = true
        swap(&output, &next)
        expect(1, answered)
    }

    /// Sends a command, to which there are so many replies; `answered` gets each of them, or `nil` once where they will not come. Never
    /// from within this call.
    func send(_ command: Command, replies: Int = 1, _ answered: @escaping (Reply?) -> Void) {
        guard !isOver, waiting.count - first < Self.mostWaiting,
            command.bytes.count <= Self.mostBytes - output.count - next.count
        else {
            later { _ in answered(nil) }
            return
        }
        next.append(command.bytes)
        expect(replies, answered)
    }

    private func expect(_ replies: Int, _ answered: @escaping (Reply?) -> Void) {
        // Until it is connected libcurl has a limit of its own.
        let deadline = isOpen ? loop.now + patience : .never
        if isOpen, first == waiting.count { timer.arm(at: deadline) }
        waiting.append(Waiting(replies: replies, deadline: deadline, answered: answered))
        note()
    }

    /// Closes it; whoever waits is answered with `nil`.
    func close() {
        onEnd = nil
        end(EngineComplaint(""))
    }

    /// Ends it for that reason, and tells it.
    func end(_ complaint: EngineComplaint) {
        guard !isOver else { return }
        isOver = true
        timer.cancel()
        connection.close()
        output.erase()
        next.erase()
        let waiting = waiting[first...]
        self.waiting = []
        first = 0
        let onEnd = onEnd
        (self.onEnd, onNews) = (nil, nil)
        onEnd?(complaint)
        for entry in waiting { entry.answered(nil) }
    }

    // MARK: Events

    /// libcurl has connected, or has failed to.
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {
        guard !isOver else { return }
        if let error {
            return end(EngineComplaint(TransferFailure(error, of: handle, isProxied: false)))
        }
        guard connection.take() else { return end(EngineComplaint("the connection was lost")) }
        isOpen = true
        for index in waiting.indices { waiting[index].deadline = loop.now + patience }
        if !waiting.isEmpty { timer.arm(at: loop.now + patience) }
        move()
    }

    func ready(_ fd: Int32, _ events: Readiness) { move() }

    /// Moves what can be moved. It may be over when this returns.
    private func move() {
        guard isOpen, !isOver else { return }
        guard transmit(), receive() else { return end(loss) }
        guard !isOver else { return }
        connection.watch(for: output.isEmpty && next.isEmpty ? .read : [.read, .write], handler: self)
    }

    /// What the loss of the connection means.
    private var loss: EngineComplaint {
        // In TLS 1.3 a server that misses our certificate says so when the handshake is over for us (RFC 8446 section 4.4.2.4).
        connection.isSecure && !hasHeard
            ? EngineComplaint(
                "it closed the connection without an answer: it may want a certificate of ours (`sessions.tls`)")
            : EngineComplaint("the connection was lost")
    }

    /// False where the connection is gone.
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

    private func receive() -> Bool {
        for _ in 0..<Self.rounds {
            switch try? connection.receive(into: &input, atMost: Self.portion) {
            case .bytes:
                hasHeard = true
                input.withSpan { reader.feed($0) }
                input.removeAll(keepingCapacity: Self.portion)
                guard take() else { return true }
            case .nothing: return true
            case .end, nil: return false
            }
        }
        // Not by an event: what waits within TLS makes none.
        note()
        return true
    }

    /// Hands the replies that are complete to those who wait. False where it is over.
    private func take() -> Bool {
        do throws(ReplyError) {
            while let reply = try reader.next() {
                guard deliver(reply) else { end(EngineComplaint("it says what nobody has asked for")); return false }
                if isOver { return false }
            }
            return true
        } catch {
            end(EngineComplaint("\(error)"))
            return false
        }
    }

    private func deliver(_ reply: Reply) -> Bool {
        if onNews?(reply) == true { return true }
        guard waiting.indices.contains(first) else { return false }
        waiting[first].replies -= 1
        let answered = waiting[first].answered
        if waiting[first].replies == 0 { advance() }
        answered(reply)
        return true
    }

    private func advance() {
        first += 1
        if first == waiting.count {
            waiting.removeAll(keepingCapacity: first <= 64)
            first = 0
            timer.disarm()
        } else {
            if first >= 256 {
                waiting.removeFirst(first)
                first = 0
            }
            timer.arm(at: waiting[first].deadline)
        }
    }

    /// Has it move at the end of this turn: so that what is asked in one turn goes at once.
    private func note() {
        guard !isNoted else { return }
        isNoted = true
        later { line in
            line.isNoted = false
            line.move()
        }
    }

    private func later(_ body: @escaping (EngineLine) -> Void) {
        let bound = LoopBound((line: self, body: body), to: loop)
        loop.execute { bound.value.body(bound.value.line) }
    }

    // Nothing is transferred but the connection.
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { false }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .end }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { true }
}

extension UpstreamConnection {
    /// A connection to the engine of `plan`, not yet opened.
    fileprivate static func engine(
        _ plan: RedisEnginePlan, loop: EventLoop, driver: CurlDriver
    ) throws(CurlError) -> UpstreamConnection {
        let origin = plan.origin
        let easy = try EasyHandle()
        var connections = plan.connections
        connections.version = .http1
        try connections.apply(to: easy, for: origin)
        // There is no name for its protocol, and some that stand in front of an engine refuse that of another.
        try easy.set(.alpn, false)
        try easy.set(.url, "\(origin)/")
        if case .socket(let path) = plan.place { try easy.set(.unixSocketPath, path) }
        try easy.set(.connectTimeout, plan.connectTime)
        try easy.set(.tcpKeepAlive, true)
        try easy.connectOnly()
        return UpstreamConnection(
            easy: easy, driver: driver, loop: loop, idleDelay: LoopDelay(plan.keepAlive),
            isSecure: origin.scheme == .https)
    }
}
