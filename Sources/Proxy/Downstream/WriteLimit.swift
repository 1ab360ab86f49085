// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import EventLoop

/// Sees to it that a caller takes its response: while output waits for it, so much has to go in each stretch of time.
///
/// Not for the time between two pieces alone: a caller that reads a byte now and then would hold a connection, its buffers and
/// an upstream for as long as it likes. Made for callers only that the socket had to be waited for.
final class WriteLimit {
    private let loop: EventLoop
    private let timer: LazyTimer
    private let time: Duration
    private let pace: Int
    private var taken = 0
    private var isRunning = false

    /// `onExpiry` is called when the caller has taken less than `pace` bytes in `time`.
    init(loop: EventLoop, time: Duration, pace: Int, onExpiry: @escaping () -> Void) {
        self.loop = loop
        self.time = time
        self.pace = pace
        timer = LazyTimer(loop: loop)
        timer.onExpiry = onExpiry
    }

    /// The caller has taken so much, and more waits.
    func waits(taken count: Int) {
        taken += count
        guard !isRunning || taken >= pace else { return }
        isRunning = true
        taken = 0
        timer.arm(at: loop.now + time)
    }

    /// Nothing waits any more.
    func end() {
        isRunning = false
        timer.disarm()
    }

    /// Gives the timer up.
    func cancel() { timer.cancel() }
}
