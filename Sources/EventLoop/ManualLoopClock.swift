// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// A clock that stands still until `advance`, for loops whose time is turned by hand.
///
/// A loop of such a clock lives through every moment at which one of its timers is due, in order, before it comes to the
/// clock's own time. libcurl's timers are not among them: they go by the system's clock, which libcurl itself reads.
public final class ManualLoopClock: Sendable {
    private struct Entry {
        weak var loop: EventLoop?
    }

    private let instant: Atomic<UInt64>
    /// Moves with every job that a loop is given and every event that it delivers.
    private let work = Atomic<UInt64>(0)
    private let loops = Mutex<[Entry]>([])
    let onProgress: @Sendable () -> Void

    /// A clock that stands at `start`. `onProgress` is called, on any thread, whenever a loop is given a job or has nothing left to do:
    /// then a condition that somebody waits for may hold.
    public init(
        start: LoopInstant = LoopInstant(nanoseconds: 1_000_000_000_000),
        onProgress: @escaping @Sendable () -> Void = {}
    ) {
        instant = Atomic(start.nanoseconds)
        self.onProgress = onProgress
    }

    /// The time that it shows.
    public var now: LoopInstant { LoopInstant(nanoseconds: instant.load(ordering: .acquiring)) }

    /// How often a loop was given a job or an event so far.
    public var workCount: UInt64 { work.load(ordering: .acquiring) }

    /// Moves the clock on and wakes its loops, from any thread. Does not wait for them. Within a loop's own turn the turn takes
    /// so long.
    public func advance(by duration: Duration) {
        let delay = LoopDelay(duration).nanoseconds
        let now = LoopInstant(nanoseconds: instant.wrappingAdd(delay, ordering: .acquiringAndReleasing).newValue)
        for loop in loops.withLock({ $0.compactMap(\.loop) }) { loop.clockAdvanced(to: now) }
    }

    /// Calls `done`, on some thread, when every loop has come to the present time and has nothing left to do.
    ///
    /// By then jobs given before the call have run, due timers have fired, what had arrived at descriptors is delivered, and so is all
    /// that this led to on these loops. A loop that nobody runs is never settled.
    public func whenSettled(_ done: @escaping @Sendable () -> Void) {
        let before = workCount
        // One loop may have given another work that had nothing left to do before.
        whenIdle { [self] in
            if workCount == before { done() } else { whenSettled(done) }
        }
    }

    /// Calls `done` when each loop has had nothing to do at some moment since.
    private func whenIdle(_ done: @escaping @Sendable () -> Void) {
        // Within the lock: a loop that is over may not be handed anything.
        let isEmpty = loops.withLock { entries in
            let loops = entries.compactMap(\.loop)
            let left = Countdown(loops.count, done)
            for loop in loops { loop.whenIdle { left.step() } }
            return loops.isEmpty
        }
        if isEmpty { done() }
    }

    func noteWork() {
        work.wrappingAdd(1, ordering: .acquiringAndReleasing)
        onProgress()
    }

    func attach(_ loop: EventLoop) { loops.withLock { $0.append(Entry(loop: loop)) } }

    func detach(_ loop: EventLoop) { loops.withLock { $0.removeAll { $0.loop == nil || $0.loop === loop } } }

    private final class Countdown: Sendable {
        private let left: Atomic<Int>
        private let done: @Sendable () -> Void

        init(_ count: Int, _ done: @escaping @Sendable () -> Void) {
            left = Atomic(count)
            self.done = done
        }

        func step() {
            if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done() }
        }
    }
}
