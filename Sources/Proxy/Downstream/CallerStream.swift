// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Glibc
internal import HTTPWire

/// The socket of a caller, with what has come and what waits to go. Both are bounded, which is the back-pressure.
final class CallerStream {
    /// The most that is read ahead of what is wanted, in bytes.
    static let inputWindow = 64 * 1024
    /// The most response that may wait for the caller before the upstream is held back, in bytes.
    static let outputWindow = 64 * 1024
    /// Time in which what still comes is read over after the last response.
    static let lingering = Duration.seconds(2)

    enum Sending {
        case done
        /// The socket has taken so many bytes, and takes no more for now.
        case waits(taken: Int)
        case broken
    }

    let caller: AcceptedCaller
    let worker: Worker
    var input = ByteQueue()
    var output = ByteQueue()
    /// True if the caller has ended its side.
    private(set) var hasEnded = false
    private var writeLimit: WriteLimit?
    private var wantsWrite = false
    private var isReading = true

    init(_ caller: AcceptedCaller, worker: Worker) {
        self.caller = caller
        self.worker = worker
    }

    var descriptor: Int32 { caller.descriptor }
    /// True if more response waits than a window holds.
    var isOutputFull: Bool { output.count >= Self.outputWindow }

    /// Watches the socket for `handler` from now on, for reading only.
    func begin(_ handler: any ReadinessHandler) {
        (wantsWrite, isReading) = (false, true)
        worker.loop.watch(descriptor, for: .read, handler: handler)
    }

    /// Reads until `limit` bytes lie unread, or no more is there. False: the connection is broken.
    func receive(upTo limit: Int) -> Bool {
        while input.count < limit, !hasEnded {
            var failure: Int32 = 0
            var isDrained = false
            let room = limit - input.count
            unsafe input.withUnsafeFreeSpace(minimum: min(room, 4096)) { space in
                let received = unsafe recv(descriptor, space.baseAddress, min(space.count, room), 0)
                if received < 0 { failure = errno }
                if received == 0 { hasEnded = true }
                isDrained = received < min(space.count, room)
                return max(received, 0)
            }
            if failure == EINTR { continue }
            if failure != 0, failure != EAGAIN { return false }
            // Less than there was room for: the socket is empty, and asking again would only tell so.
            if failure == EAGAIN || isDrained { break }
        }
        return true
    }

    /// Reads what comes after the last response and forgets it. False: nothing more will come.
    func discardInput() -> Bool {
        unsafe withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 16) { space in
            for _ in 0..<16 {
                let received = unsafe recv(descriptor, space.baseAddress, space.count, 0)
                if received > 0 || (received < 0 && errno == EINTR) { continue }
                return received != 0 && errno == EAGAIN
            }
            return true
        }
    }

    /// True if the socket holds something that was not read yet.
    var hasUnread: Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) > 0
    }

    /// Writes what the socket takes.
    @inline(__always)
    func send() -> Sending {
        let waiting = output.count
        let failure = output.send(to: descriptor, keepingCapacity: 2 * Self.outputWindow)
        if failure == 0 {
            writeLimit?.end()
            return .done
        }
        return failure == EAGAIN ? .waits(taken: waiting - output.count) : .broken
    }

    /// Calls `stalled` when the caller goes on taking too little.
    func limitWriting(taken: Int, stalled: @escaping () -> Void) {
        let limit =
            writeLimit
            ?? WriteLimit(loop: worker.loop, time: worker.limits.writeTime, pace: worker.limits.writePace) {
                [unowned self] in
                worker.logStall(of: caller.listener)
                stalled()
            }
        writeLimit = limit
        limit.waits(taken: taken)
    }

    /// Gives the limit for writing up.
    func endWriteLimit() {
        writeLimit?.cancel()
        writeLimit = nil
    }

    /// Watches the socket for what can be done with it.
    func watch(reads: Bool, _ handler: any ReadinessHandler) {
        let write = !output.isEmpty
        guard write != wantsWrite || reads != isReading else { return }
        wantsWrite = write
        isReading = reads
        var interest: Interest = []
        if reads { interest.insert(.read) }
        if write { interest.insert(.write) }
        worker.loop.watch(descriptor, for: interest, handler: handler)
    }

    /// Ends our side.
    func endOutput() { _ = shutdown(descriptor, Int32(Glibc.SHUT_WR)) }

    /// Gives back the memory of both buffers. Returns the bytes that were held.
    func releaseMemory() -> Int {
        let held = input.capacity + output.capacity
        input.removeAll(keepingCapacity: 0)
        output.removeAll(keepingCapacity: 0)
        return held
    }

    /// Closes the socket and gives up the caller's place. `resetting`: so that a caller that counts on the end of the connection for
    /// the end of the body does not take it for complete.
    func close(resetting: Bool) {
        endWriteLimit()
        worker.loop.forget(descriptor)
        if resetting {
            var option = linger(l_onoff: 1, l_linger: 0)
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }
        _ = Glibc.close(descriptor)
        caller.place.leave()
    }
}
