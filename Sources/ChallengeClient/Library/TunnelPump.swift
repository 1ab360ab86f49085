// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import HTTPWire

/// What an exchange of the client's becomes after a 101: bytes both ways, on the loop.
///
/// What comes goes into the response's pipe, as far as that has room; what goes is one piece at a time, the next when that has
/// gone. Where nothing moves for `timeouts.idle`, it ends.
final class TunnelPump: ReadinessHandler {
    /// How much is received at once, in bytes.
    private static let portion = 16 * 1024
    /// How often it receives before others get their turn.
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

    /// Takes `connection` over; `onEnd` is called once when it is over for both sides. Nothing moves before `pump`.
    init(_ connection: UpstreamConnection, pipe: BodyPipe, on loop: EventLoop, onEnd: @escaping () -> Void) {
        self.connection = connection
        self.pipe = pipe
        self.loop = loop
        self.onEnd = onEnd
        timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            end(
                .failure(ClientError(.timedOut, detail: "Nothing moved for as long as `timeouts.idle` allows.")),
                resetting: true)
        }
        timer.arm(at: loop.now + connection.idleDelay)
        swap(&input, &connection.received)
    }

    /// Sends `bytes` behind what waits; `done` is told, once, when they have gone, or that they will not.
    func send(_ bytes: [UInt8], _ done: CheckedContinuation<Bool, Never>) {
        guard !isOver else { return done.resume(returning: false) }
        senders.append((bytes, done))
        pump()
    }

    func ready(_ fd: Int32, _ events: Readiness) { pump() }

    /// Moves what can be moved. It may be over when this returns.
    func pump() {
        guard !isOver else { return }
        guard transmit(), receive() else {
            return end(
                .failure(ClientError(.unreachable, detail: "The server has ended the connection in its middle.")),
                resetting: true)
        }
        guard !isOver else { return }
        var interest: Interest = []
        if !hasEnded, pipe.hasRoom { interest.insert(.read) }
        if !output.isEmpty { interest.insert(.write) }
        connection.watch(for: interest, handler: self)
    }

    /// Ends it, whoever wants that.
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

    /// False where the connection is gone.
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
        // Not by an event: what waits within TLS makes none.
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
