// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import EventLoop
internal import Glibc
internal import HTTPWire

/// An exchange after a 101 (RFC 9110 §7.8): bytes in both directions, not examined.
///
/// Each direction pauses its source while its sink is blocked. The end of one side is passed on after all bytes before
/// it, and the other direction continues, as on a direct connection. Over TLS to the upstream, one direction cannot be
/// ended alone, so the caller's end ends both. A reset is passed on as a reset. If no byte moves in either direction
/// for `timeouts.idle`, the tunnel is reset.
final class Tunnel: ReadinessHandler, WorkerConnection {
    /// The number of moves in each direction before other connections get their turn.
    private static let roundsPerTurn = 8

    private let stream: CallerStream
    private let upstream: UpstreamConnection
    private let loop: EventLoop
    private let timer: LazyTimer
    /// The flows from the caller to the upstream, and back.
    private var up = TunnelFlow()
    private var down = TunnelFlow()
    private var isOver = false
    var isEnqueued = false

    /// Takes over a caller's socket and its buffers: bytes after the handshake, and the head of the 101. Nothing moves before
    /// `turn`.
    init(_ stream: CallerStream, _ upstream: UpstreamConnection) {
        self.stream = stream
        self.upstream = upstream
        loop = stream.worker.loop
        timer = LazyTimer(loop: loop)
        // Both directions together are limited by the upstream's idle timeout only.
        stream.endWriteLimit()
        timer.onExpiry = { [unowned self] in close(resetting: true) }
        timer.arm(at: loop.now + upstream.idleDelay)
        swap(&up.bytes, &stream.input)
        swap(&down.bytes, &stream.output)
        upstream.received.withSpan { down.bytes.append($0) }
        upstream.received.removeAll(keepingCapacity: 0)
        if stream.hasEnded { up.end() }
        stream.worker.tunnelOpened()
    }

    var caller: AcceptedCaller { stream.caller }

    func close() { close(resetting: false) }

    /// Ends both sides. `resetting`: one end has failed or the timeout has passed, and the data so far must not look
    /// complete to either side.
    private func close(resetting: Bool) {
        guard !isOver else { return }
        isOver = true
        timer.cancel()
        upstream.close(resetting: resetting)
        let worker = stream.worker
        worker.tunnelClosed()
        // The tunnel counted as its exchange.
        worker.exchangeEnded()
        stream.close(resetting: resetting)
        worker.connectionClosed(self, holding: up.bytes.capacity + down.bytes.capacity)
    }

    func turn() {
        isEnqueued = false
        pump()
    }

    // A tunnel is always in use.
    func closeIfIdle() {}
    func turnAway() { close() }
    func vacancy(at now: LoopInstant) -> Vacancy? { nil }
    func closeForAnother() -> Bool { false }

    func ready(_ fd: Int32, _ events: Readiness) {
        if fd == caller.descriptor {
            if events.isReadable || events.isBroken { up.sourceIsReady = true }
            if events.isWritable || events.isBroken { down.sinkIsReady = true }
        } else {
            // TLS may have to read in order to write, and the reverse.
            if events.isReadable || upstream.isSecure || events.isBroken { down.sourceIsReady = true }
            if events.isWritable || upstream.isSecure || events.isBroken { up.sinkIsReady = true }
        }
        pump()
    }

    /// Moves all bytes that can move. The tunnel may be closed afterwards.
    private func pump() {
        guard !isOver else { return }
        var rounds = 0
        while up.canMove || down.canMove, rounds < Self.roundsPerTurn {
            rounds += 1
            if moveUp(), moveDown() { continue }
            // Bytes that one end sent before it disappeared are still sent to the other, as far as its socket accepts
            // them now.
            _ = moveUp()
            _ = moveDown()
            return close(resetting: true)
        }
        passEnds()
        if up.endIsPassed, down.endIsPassed {
            return close()
        }
        up.shrink()
        down.shrink()
        // Enqueued, because bytes inside OpenSSL cause no event.
        if up.canMove || down.canMove { stream.worker.enqueue(self) }
        watch()
    }

    // MARK: Moving

    /// Moves bytes upstream, and returns false if the connection at one end is gone.
    private func moveUp() -> Bool {
        if up.wantsSource, up.sourceIsReady {
            let asked = up.appetite
            var failure: Int32 = 0
            var received = 0
            unsafe up.bytes.withUnsafeFreeSpace(minimum: asked) { space in
                received = unsafe recv(caller.descriptor, space.baseAddress, asked, 0)
                if received < 0 { failure = errno }
                return received
            }
            if received > 0 {
                progress()
                up.received(received, of: asked)
            } else if received == 0 {
                up.end()
            } else if failure != EAGAIN, failure != EINTR {
                return false
            }
            // Less than the free space: the socket is empty.
            if received < asked, failure != EINTR { up.sourceIsReady = false }
        }
        guard up.wantsSink, up.sinkIsReady else { return true }
        let before = up.bytes.count
        guard (try? upstream.send(&up.bytes)) != nil else { return false }
        if up.bytes.count < before { progress() }
        up.sinkIsReady = up.bytes.isEmpty
        return true
    }

    private func moveDown() -> Bool {
        if down.wantsSource, down.sourceIsReady, !receive() { return false }
        guard down.wantsSink, down.sinkIsReady else { return true }
        let before = down.bytes.count
        let failure = down.bytes.send(to: caller.descriptor, keepingCapacity: TunnelFlow.window)
        if down.bytes.count < before { progress() }
        down.sinkIsReady = failure == 0
        return failure == 0 || failure == EAGAIN
    }

    /// Fills a window from the upstream. A loop, because TLS returns one record at a time.
    private func receive() -> Bool {
        let asked = down.appetite
        while down.bytes.count < asked {
            switch try? upstream.receive(into: &down.bytes, atMost: asked - down.bytes.count) {
            case .bytes: progress()
            case .nothing:
                down.sourceIsReady = false
                down.received(down.bytes.count, of: asked)
                return true
            case .end:
                down.end()
                return true
            case nil: return false
            }
        }
        down.received(asked, of: asked)
        return true
    }

    private func progress() { timer.arm(at: loop.now + upstream.idleDelay) }

    // MARK: Ends

    private func passEnds() {
        if up.owesEnd {
            up.passEnd()
            // If the end cannot be signalled to the upstream, nothing more is read from there.
            if !upstream.endOutput() { down.end() }
        }
        if down.owesEnd {
            down.passEnd()
            _ = shutdown(caller.descriptor, Int32(Glibc.SHUT_WR))
        }
    }

    private func watch() {
        var callers: Interest = []
        if up.wantsSource { callers.insert(.read) }
        if down.wantsSink { callers.insert(.write) }
        loop.watch(caller.descriptor, for: callers, handler: self)
        var upstreams: Interest = []
        if down.wantsSource { upstreams.insert(.read) }
        if up.wantsSink { upstreams.insert(.write) }
        upstream.watch(for: upstreams, handler: self)
    }
}
