// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Curl
package import EventLoop
internal import Glibc

/// Drives one libcurl multi handle on one event loop: sockets, timer, completions.
///
/// libcurl completes transfers also within `add` and within a timeout, so completions are drained before every wait and
/// not only after events.
package final class CurlDriver: ReadinessHandler, WaitHook {
    private unowned let loop: EventLoop
    private var multi: MultiHandle
    /// Broken handles that still have connections of streams.
    private var retired: [MultiHandle] = []
    private let connections: Int
    private let idle: IdleConnections
    private var deadline = LoopInstant.never
    private var pending: [Transfer] = []
    /// Spare storage for the next list: two arrays are swapped, so that notifying costs no allocation.
    private var spare: [Transfer] = []
    private var hasWork = false
    private var isClosing = false
    /// The number of times libcurl was run on its sockets; bytes received within one cycle were read at once.
    private(set) var cycles: UInt64 = 0
    /// Streams whose answer may have ended without a report from libcurl.
    private var endWatched: [CurlStream] = []
    /// Streams whose request head waits for the end of this turn.
    private var held: [HTTP1Stream] = []

    /// The nanoseconds of libcurl's in one turn after which its sockets wait for the next, so that callers and timers have theirs.
    private let budget: UInt64
    /// The nanoseconds that libcurl has taken in this turn; `nil` before its first event.
    private var spent: UInt64?

    /// Creates a driver on `loop`, on its thread. `connections`: the limit of idle connections held by libcurl. `budget`: libcurl's
    /// time in one turn, in nanoseconds.
    package init(loop: EventLoop, connections: Int, budget: UInt64 = 10_000_000) throws(CurlError) {
        self.loop = loop
        self.budget = budget
        idle = IdleConnections(loop: loop)
        self.connections = connections
        multi = try MultiHandle(maxIdle: connections)
        loop.add(self)
    }

    /// Starts `stream`. Its owner is not called from within.
    func start(_ stream: CurlStream) throws(CurlError) { try start(stream.easy, delegate: stream) }

    /// Stops `stream` in any state. In the middle of a request, its connection is closed.
    func stop(_ stream: CurlStream) {
        stop(stream.easy)
        // The list retains the stream, which retains the driver.
        if !endWatched.isEmpty { endWatched.removeAll { $0 === stream } }
    }

    /// Starts the transfer of `easy`; `delegate` is called at its end, not from within.
    func start(_ easy: EasyHandle, delegate: any TransferDelegate) throws(CurlError) {
        try multi.add(easy, delegate: delegate)
        applyEffects()
        hasWork = true
    }

    /// Stops the transfer of `easy`, and closes a connection that the handle holds.
    func stop(_ easy: EasyHandle) {
        multi.remove(easy)
        applyEffects()
        if !retired.isEmpty { removeRetired(easy) }
        hasWork = true
    }

    /// Closes all connections and leaves the loop, in the next turn. No stream may use the driver any more.
    func close() {
        isClosing = true
        hasWork = true
    }

    private func leaveLoop() {
        for old in retired + [multi] {
            old.close()
            applyEffects(of: old)
        }
        retired = []
        loop.remove(self)
    }

    // Replaces the multi handle after an error of libcurl's own, such as a lack of memory: it is unusable then.

    private func replaceMulti() {
        guard let fresh = try? MultiHandle(maxIdle: connections) else {
            // Without memory for another one, no transfer can be started before the next attempt.
            deadline = loop.systemNow.advanced(byMilliseconds: 100)
            return
        }
        retired.append(multi)
        multi = fresh
        deadline = .never
        removeRetired(nil)
    }

    /// Removes a handle from the retired multi handles, and drops those that are empty.
    private func removeRetired(_ easy: EasyHandle?) {
        let all = retired
        retired = []
        for old in all {
            if let easy { old.remove(easy) }
            if old.count == 0 { old.close() }
            applyEffects(of: old)
            if old.count > 0 { retired.append(old) }
        }
    }

    /// The current time of the clock that libcurl uses.
    var systemNow: LoopInstant { loop.systemNow }

    /// Makes the next turn notify owners of events that do not come from libcurl.
    func wake() { hasWork = true }

    /// Resumes a paused stream. libcurl may call back from within.
    func unpause(_ stream: CurlStream) {
        cycles &+= 1
        if let error = stream.easy.unpause() { stream.transferEnded(stream.easy, error: error) }
        applyEffects()
        hasWork = true
    }

    /// Makes libcurl examine `stream` again soon, even without an event on its connection.
    func poll(_ stream: CurlStream) {
        // libcurl ignores an unpause that changes nothing.
        stream.easy.pauseReceiving()
        unpause(stream)
    }

    /// Makes `stream` send its held head at the end of this turn.
    func hold(_ stream: HTTP1Stream) {
        held.append(stream)
        hasWork = true
    }

    /// Enqueues `transfer` for a notification of its owner.
    func enqueue(_ transfer: Transfer) {
        guard !transfer.isEnqueued else { return }
        transfer.isEnqueued = true
        pending.append(transfer)
    }

    /// Handles an event on a socket of libcurl's.
    package func ready(_ fd: Int32, _ events: Readiness) {
        // The loop reports the event again in the next turn, after those of sockets that waited longer (epoll(7)).
        if let spent, spent >= budget, !events.contains(.refused) { return }
        let began = loop.readNow()
        defer { spent = (spent ?? 0) &+ loop.readNow().nanoseconds &- began.nanoseconds }
        cycles &+= 1
        if events.contains(.refused) { multi.socketUnwatched(fd) }
        multi.socketReady(
            fd, readable: events.isReadable, writable: events.isWritable, error: events.isBroken)
        applyEffects()
        hasWork = true
        if !endWatched.isEmpty { pollEndWatched(at: fd) }
    }

    /// Makes the connection of a stream whose request has just ended unusable.
    func dropConnection(of stream: CurlStream) {
        let fd = stream.easy.socket
        guard fd >= 0, stream.easy.speaksHTTP1 else { return }
        // libcurl finds the connection dead before reusing it.
        _ = shutdown(fd, Int32(SHUT_RDWR))
    }

    /// Drops the connection of a completed request if unread bytes are waiting there.
    ///
    /// They answer no request, and the next request may be sent before `IdleConnections` sees them.
    func dropStrayConnection(of stream: CurlStream) {
        let fd = stream.easy.socket
        var byte: UInt8 = 0
        guard fd >= 0, unsafe recv(fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0 else { return }
        dropConnection(of: stream)
    }

    /// Watches a stream with paused sending whose answer only the connection's end can end.
    ///
    /// libcurl stops reading there, but reports nothing before sending is resumed.
    func watchEnd(of stream: CurlStream) {
        if !endWatched.contains(where: { $0 === stream }) { endWatched.append(stream) }
    }

    private func pollEndWatched(at fd: Int32) {
        endWatched.removeAll { !$0.mayMissEnd }
        for stream in endWatched where stream.easy.socket == fd { stream.transfer.bodyAvailable() }
    }

    /// Runs libcurl's timer if due, collects completions and notifies owners.
    package func beforeWait(now: LoopInstant) -> WaitAdvice {
        var didWork = false
        spent = nil
        if deadline <= now {
            deadline = .never
            cycles &+= 1
            multi.timeout()
            applyEffects()
            hasWork = true
        }
        if hasWork {
            hasWork = false
            didWork = true
            processCompletions()
            if isClosing, pending.isEmpty {
                leaveLoop()
                return WaitAdvice(didWork: true, deadline: .never)
            }
        }
        return WaitAdvice(didWork: didWork, deadline: deadline)
    }

    private func processCompletions() {
        while let stream = held.popLast() { stream.sendHeld() }
        while let completion = multi.nextCompleted() {
            completion.delegate.transferEnded(completion.handle, error: completion.error)
        }
        if !endWatched.isEmpty { endWatched.removeAll { !$0.mayMissEnd } }
        applyEffects()
        if multi.isBroken { replaceMulti() }
        // Notifying may enqueue further transfers, which are notified at the next call, in this turn.
        var told: [Transfer] = []
        swap(&told, &spare)
        swap(&told, &pending)
        for transfer in told {
            transfer.isEnqueued = false
            transfer.notifyOwner()
        }
        told.removeAll(keepingCapacity: true)
        swap(&told, &spare)
        if !pending.isEmpty { hasWork = true }
    }

    private func applyEffects() {
        applyEffects(of: multi)
        switch multi.takeTimer() {
        case .unchanged: break
        case .cancelled: deadline = .never
        case .after(let milliseconds): deadline = loop.systemNow.advanced(byMilliseconds: milliseconds)
        }
    }

    private func applyEffects(of multi: MultiHandle) {
        while let effect = multi.nextEffect() {
            switch effect {
            case .watch(let fd, let interest, let isTransfer):
                apply(interest, to: fd, isTransfer: isTransfer)
            case .closed(let fd):
                loop.forget(fd)
            case .idle(let fd):
                loop.watch(fd, for: .read, handler: idle)
            }
        }
    }

    /// libcurl removes its socket at the end of every transfer and adds it at the next, so a socket that is closed
    /// through the callback may stay registered in between. Others are closed without a callback.
    private func apply(_ interest: SocketInterest, to fd: Int32, isTransfer: Bool) {
        switch interest {
        case .none: if isTransfer { loop.suspend(fd) } else { loop.unwatch(fd) }
        case .read: loop.watch(fd, for: .read, handler: self)
        case .readWrite: loop.watch(fd, for: [.read, .write], handler: self)
        case .write: loop.watch(fd, for: .write, handler: self)
        }
    }
}

/// Watches the idle connections of libcurl and ends those that receive bytes.
///
/// Such bytes answer no request and must not be read as the answer to the next one (RFC 9112 §9.2), which may be
/// another caller's. libcurl before 8.1 reuses a connection with unread bytes, but not one that has ended.
final class IdleConnections: ReadinessHandler {
    private unowned let loop: EventLoop
    /// Reads dropped per turn.
    private static let maxPerTurn = 16

    init(loop: EventLoop) { self.loop = loop }

    func ready(_ fd: Int32, _ events: Readiness) {
        unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { space in
            for _ in 0..<Self.maxPerTurn {
                let count = unsafe recv(fd, space.baseAddress, space.count, Int32(MSG_DONTWAIT))
                if count > 0 {
                    _ = shutdown(fd, Int32(SHUT_RDWR))
                    continue
                }
                // libcurl notices the end itself.
                if count == 0 || (errno != EAGAIN && errno != EINTR) { loop.suspend(fd) }
                return
            }
        }
    }
}
