// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A deadline that moves with every request and hardly ever comes.
///
/// Moving it later costs one store: the timer that is scheduled already fires early once, sees the newer deadline and
/// is scheduled again. So a busy keep-alive connection touches the timer heap about once per period.
public final class LazyTimer: TimerHandler {
    private unowned let loop: EventLoop
    /// The deadline as it was set last; `never` where there is none.
    public private(set) var deadline = LoopInstant.never
    private var scheduledAt = LoopInstant.never
    private var token: TimerToken?
    /// Called on the loop's thread when the deadline has come. Set it before the first `arm`.
    public var onExpiry: (() -> Void)?

    /// A timer of `loop` without a deadline.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    /// Sets the deadline, or moves it.
    public func arm(at instant: LoopInstant) {
        deadline = instant
        guard instant < scheduledAt else { return }
        if let token { loop.cancel(token) }
        scheduledAt = instant
        token = loop.schedule(at: instant, self)
    }

    /// There is no deadline for now. Costs one store.
    public func disarm() {
        deadline = .never
    }

    /// Gives the timer up: nothing fires any more, and the loop forgets it.
    public func cancel() {
        disarm()
        if let token { loop.cancel(token) }
        token = nil
        scheduledAt = .never
    }

    /// Tells that the deadline has passed, or waits on where it was put off meanwhile.
    public func timerFired(tag: UInt64) {
        token = nil
        scheduledAt = .never
        guard deadline != .never else { return }
        if deadline <= loop.now {
            deadline = .never
            onExpiry?()
        } else {
            arm(at: deadline)
        }
    }
}
