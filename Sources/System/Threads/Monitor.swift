// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Locked value whose changes threads can wait for, with a deadline. All code that blocks a thread until another one
/// acts uses it; nothing polls.
@safe
package final class Monitor<State: Sendable>: @unchecked Sendable {
    // Safe to share: the lock guards the state; neither it nor the condition variable moves.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let changed: UnsafeMutablePointer<pthread_cond_t>
    private var state: State

    /// A monitor of that value.
    package init(_ state: State) {
        self.state = state
        unsafe lock = .allocate(capacity: 1)
        unsafe changed = .allocate(capacity: 1)
        unsafe pthread_mutex_init(lock, nil)
        // Not the wall clock, which may be set.
        var attributes = pthread_condattr_t()
        unsafe pthread_condattr_init(&attributes)
        unsafe pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
        unsafe pthread_cond_init(changed, &attributes)
        unsafe pthread_condattr_destroy(&attributes)
    }

    deinit {
        unsafe pthread_cond_destroy(changed)
        unsafe pthread_mutex_destroy(lock)
        unsafe changed.deallocate()
        unsafe lock.deallocate()
    }

    /// Changes the value and wakes all waiting threads to check it.
    package func update<Result>(_ body: (inout State) -> Result) -> Result {
        unsafe pthread_mutex_lock(lock)
        defer {
            unsafe pthread_cond_broadcast(changed)
            unsafe pthread_mutex_unlock(lock)
        }
        return body(&state)
    }

    /// Waits until `take`, which may change the value, returns a result, and returns that result.
    package func wait<Result>(for take: (inout State) -> Result?) -> Result {
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        while true {
            if let result = take(&state) { return result }
            unsafe pthread_cond_wait(changed, lock)
        }
    }

    /// Waits until `take` returns a result; nil if that takes longer than `limit`.
    package func wait<Result>(within limit: Duration, for take: (inout State) -> Result?) -> Result? {
        var end = SystemClock.deadline(after: limit)
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        while true {
            if let result = take(&state) { return result }
            if unsafe pthread_cond_timedwait(changed, lock, &end) == ETIMEDOUT { return take(&state) }
        }
    }
}

/// Counting semaphore: each signal lets one present or future wait pass.
package final class ThreadSemaphore: Sendable {
    private let signals = Monitor(0)

    /// A semaphore without a signal.
    package init() {}

    /// Lets one waiting thread continue, or the next one to wait.
    package func signal() { signals.update { $0 += 1 } }

    /// Waits for a signal.
    package func wait() { signals.wait(for: Self.take) }

    /// Waits for a signal for at most `limit`; returns whether it came.
    package func wait(within limit: Duration) -> Bool { signals.wait(within: limit, for: Self.take) != nil }

    private static func take(_ signals: inout Int) -> Void? {
        guard signals > 0 else { return nil }
        signals -= 1
        return ()
    }
}

/// Count of events to wait for: all waits end for good when the last event has happened.
package final class CountDownLatch: Sendable {
    private let left: Monitor<Int>

    /// Makes a latch of `count` events; with 0, the latch is open from the beginning.
    package init(_ count: Int = 1) { left = Monitor(count) }

    /// Counts one event.
    package func countDown() { left.update { $0 -= 1 } }

    /// Waits until all events have happened, for at most `limit`; returns true if they have.
    package func wait(within limit: Duration) -> Bool {
        left.wait(within: limit) { $0 <= 0 ? () : nil } != nil
    }
}

/// Value that one thread sets once and for which others block. Tasks wait for a `OneShot` instead.
package final class Promise<Value: Sendable>: Sendable {
    private let value = Monitor<Value?>(nil)

    /// Makes a promise without a value.
    package init() {}

    /// Sets the value; does nothing if there is one.
    package func fulfill(_ value: Value) { self.value.update { $0 = $0 ?? value } }

    /// Waits for the value.
    package func wait() -> Value { value.wait { $0 } }

    /// Waits for the value for at most `limit`; nil if the value is not set by then.
    package func wait(within limit: Duration) -> Value? { value.wait(within: limit) { $0 } }
}
