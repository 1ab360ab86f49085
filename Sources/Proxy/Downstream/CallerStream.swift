// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop
internal import Glibc
internal import HTTPWire
internal import System

/// The socket of a caller, with its input and output. Both are bounded, which makes the back-pressure.
final class CallerStream {
    /// The size of the input buffer, in bytes.
    static let inputWindow = 64 * 1024
    /// The size of the output buffer above which the upstream is paused, in bytes.
    static let outputWindow = 64 * 1024
    /// The size of the first input buffer of a request, in bytes.
    static let firstInput = 4096
    /// The time in which input is discarded after the last response.
    static let lingering = Duration.seconds(2)

    enum Sending {
        case done
        /// The socket has taken that many bytes and is full.
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
    /// True if the output holds at least a window.
    var isOutputFull: Bool { output.count >= Self.outputWindow }

    /// Watches the socket for `handler` from now on, for reading only.
    func begin(_ handler: any ReadinessHandler) {
        (wantsWrite, isReading) = (false, true)
        worker.loop.watch(descriptor, for: .read, handler: handler)
    }

    /// Reads until `limit` bytes are buffered or the socket is empty. Returns false if the connection is broken.
    func receive(upTo limit: Int) -> Bool {
        worker.spareInputs.lend(to: &input)
        while input.count < limit, !hasEnded {
            var failure: Int32 = 0
            var isDrained = false
            let room = limit - input.count
            unsafe input.withUnsafeFreeSpace(minimum: min(room, Self.firstInput)) { space in
                let received = unsafe recv(descriptor, space.baseAddress, min(space.count, room), 0)
                if received < 0 { failure = errno }
                if received == 0 { hasEnded = true }
                isDrained = received < min(space.count, room)
                return max(received, 0)
            }
            if failure == EINTR { continue }
            if failure != 0, failure != EAGAIN { return false }
            // Less than the free space: the socket is empty, and another call would only confirm this.
            if failure == EAGAIN || isDrained { break }
        }
        return true
    }

    /// Reads and discards input after the last response. Returns false if no more will come.
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

    /// True if the socket holds unread input.
    var hasUnread: Bool {
        var byte: UInt8 = 0
        return unsafe recv(descriptor, &byte, 1, Int32(MSG_PEEK)) > 0
    }

    /// Sends as much as the socket accepts.
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

    /// Limits the time of a blocked caller. Calls `stalled` if the caller keeps taking too little.
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

    /// Cancels the write limit.
    func endWriteLimit() {
        writeLimit?.cancel()
        writeLimit = nil
    }

    /// Watches the socket for the events that are needed.
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

    /// Ends the output side of the connection.
    func endOutput() { _ = shutdown(descriptor, Int32(Glibc.SHUT_WR)) }

    /// Gives the input buffer to the next connection that reads, if nothing is left in it.
    func returnInput() { worker.spareInputs.takeBack(from: &input) }

    /// Number of bytes of both buffers.
    var heldMemory: Int { input.capacity + output.capacity }

    /// Releases the memory of both buffers. Returns the number of bytes released.
    func releaseMemory() -> Int {
        let held = heldMemory
        input.removeAll(keepingCapacity: 0)
        output.removeAll(keepingCapacity: 0)
        return held
    }

    /// Closes the socket and returns the caller's permit. With `resetting`, a caller that waits for the end of the
    /// connection notices that the body is incomplete.
    func close(resetting: Bool) {
        endWriteLimit()
        worker.loop.forget(descriptor)
        if resetting {
            Sockets.resetOnClose(descriptor)
        }
        _ = Glibc.close(descriptor)
        caller.permit.leave()
    }
}

/// A limit on how slowly a caller may take its response.
///
/// While output waits, a number of bytes must be sent in each period. A timeout between two pieces would not suffice: a
/// caller that reads a byte now and then could hold a connection, its buffers and an upstream indefinitely. Made only
/// for callers whose socket was full.
final class WriteLimit {
    private let loop: EventLoop
    private let timer: LazyTimer
    private let time: Duration
    private let pace: Int
    private var taken = 0
    private var isRunning = false

    /// Makes a limit; `onExpiry` is called when the caller has taken less than `pace` bytes in `time`.
    init(loop: EventLoop, time: Duration, pace: Int, onExpiry: @escaping () -> Void) {
        self.loop = loop
        self.time = time
        self.pace = pace
        timer = LazyTimer(loop: loop)
        timer.onExpiry = onExpiry
    }

    /// Records that the caller has taken `count` bytes, and that more output waits.
    func waits(taken count: Int) {
        taken += count
        guard !isRunning || taken >= pace else { return }
        isRunning = true
        taken = 0
        timer.arm(at: loop.now + time)
    }

    /// Records that no output waits any more.
    func end() {
        isRunning = false
        timer.disarm()
    }

    /// Cancels the timer.
    func cancel() { timer.cancel() }
}

extension ByteQueue {
    /// Sends all bytes, then releases memory beyond `kept` bytes. Returns 0, or the error number: EAGAIN if the socket is full.
    ///
    /// A single call, because each access to a queue that is an object's property is checked for exclusivity.
    mutating func send(to descriptor: Int32, keepingCapacity kept: Int) -> Int32 {
        while !isEmpty {
            let sent = unsafe withUnsafeBytes { bytes in
                unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            }
            if sent > 0 {
                consume(sent)
            } else if errno != EINTR {
                return errno
            }
        }
        removeAll(keepingCapacity: kept)
        return 0
    }
}
