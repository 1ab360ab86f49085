// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Synchronization

/// Clock that advances only by `advance`, for loops in tests.
///
/// A loop with this clock passes every instant at which one of its timers is due, in order, before it reaches the
/// clock's own time. libcurl's timers are excluded: they use the system's clock, which libcurl itself reads.
public final class ManualLoopClock: Sendable {
    private struct Entry {
        weak var loop: EventLoop?
    }

    private let instant: Atomic<UInt64>
    /// Incremented with every job given to a loop and every event delivered.
    private let work = Atomic<UInt64>(0)
    private let loops = Mutex<[Entry]>([])
    let onProgress: @Sendable () -> Void

    /// Creates a clock at `start`.
    ///
    /// `onProgress` is called, on any thread, whenever a loop receives a job or becomes idle: an awaited condition may
    /// then hold.
    public init(
        start: LoopInstant = LoopInstant(nanoseconds: 1_000_000_000_000),
        onProgress: @escaping @Sendable () -> Void = {}
    ) {
        instant = Atomic(start.nanoseconds)
        self.onProgress = onProgress
    }

    /// Current time of the clock.
    public var now: LoopInstant { LoopInstant(nanoseconds: instant.load(ordering: .acquiring)) }

    /// Number of jobs and events that loops have received so far.
    public var workCount: UInt64 { work.load(ordering: .acquiring) }

    /// Advances the clock and wakes its loops, on any thread, without waiting for them.
    ///
    /// Within a loop's own turn, the turn takes that time.
    public func advance(by duration: Duration) {
        let delay = LoopDelay(duration).nanoseconds
        let now = LoopInstant(nanoseconds: instant.wrappingAdd(delay, ordering: .acquiringAndReleasing).newValue)
        for loop in loops.withLock({ $0.compactMap(\.loop) }) { loop.clockAdvanced(to: now) }
    }

    /// Calls `done`, on some thread, when every loop is idle at the current time.
    ///
    /// By then, jobs enqueued before the call have run, due timers have fired, events that had arrived at descriptors
    /// are delivered, and everything that followed on these loops is done. A loop that is not run never settles.
    public func whenSettled(_ done: @escaping @Sendable () -> Void) {
        let before = workCount
        // A busy loop may have given work to a loop that was idle.
        whenIdle { [self] in
            if workCount == before { done() } else { whenSettled(done) }
        }
    }

    /// Calls `done` when each loop has been idle at some moment since the call.
    private func whenIdle(_ done: @escaping @Sendable () -> Void) {
        // Within the lock, because a finished loop must receive nothing.
        let isEmpty = loops.withLock { entries in
            let loops = entries.compactMap(\.loop)
            let looks = CompletionGroup(of: loops.count, then: done)
            for loop in loops { loop.whenIdle { looks.completeOne() } }
            return loops.isEmpty
        }
        if isEmpty { done() }
    }

    func recordWork() {
        work.wrappingAdd(1, ordering: .acquiringAndReleasing)
        onProgress()
    }

    func attach(_ loop: EventLoop) { loops.withLock { $0.append(Entry(loop: loop)) } }

    func detach(_ loop: EventLoop) { loops.withLock { $0.removeAll { $0.loop == nil || $0.loop === loop } } }
}
