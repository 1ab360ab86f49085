// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// A signal that state has changed: conditions are checked when it rings, and never in between.
@safe
package final class Bell: @unchecked Sendable {
    // Safe to share: the system's lock guards the rest; neither it nor the condition variable moves.
    private let lock: UnsafeMutablePointer<pthread_mutex_t>
    private let rung: UnsafeMutablePointer<pthread_cond_t>
    private var rings: UInt64 = 0
    private var waiters: [CheckedContinuation<Void, Never>] = []

    /// The bell of this process.
    package static let shared = Bell()

    /// Creates a bell of its own.
    package init() {
        unsafe lock = .allocate(capacity: 1)
        unsafe rung = .allocate(capacity: 1)
        unsafe pthread_mutex_init(lock, nil)
        unsafe pthread_cond_init(rung, nil)
    }

    deinit {
        unsafe pthread_cond_destroy(rung)
        unsafe pthread_mutex_destroy(lock)
        unsafe rung.deallocate()
        unsafe lock.deallocate()
    }

    /// Has every waiter check its condition again.
    package func ring() {
        let waiters = locked {
            rings += 1
            unsafe pthread_cond_broadcast(rung)
            defer { self.waiters = [] }
            return self.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Blocks until `condition` holds. Returns false after five minutes: the condition will not hold, or its change did
    /// not ring.
    package func wait(until condition: () -> Bool) -> Bool {
        var end = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &end)
        end.tv_sec += Int(limit.components.seconds)
        while true {
            let before = locked { rings }
            if condition() { return true }
            let isRung = locked {
                while rings == before {
                    if unsafe pthread_cond_timedwait(rung, lock, &end) == ETIMEDOUT { return false }
                }
                return true
            }
            guard isRung else { return false }
        }
    }

    /// Suspends until `condition` holds.
    package func wait(until condition: @Sendable () -> Bool) async {
        while true {
            let before = locked { rings }
            if condition() { return }
            await withCheckedContinuation { waiter in
                let isRung = locked {
                    if rings == before { waiters.append(waiter) }
                    return rings != before
                }
                if isRung { waiter.resume() }
            }
        }
    }

    private func locked<Value>(_ body: () -> Value) -> Value {
        unsafe pthread_mutex_lock(lock)
        defer { unsafe pthread_mutex_unlock(lock) }
        return body()
    }
}

/// Something that happens once, on some thread, and that others wait for.
package final class Signal: Sendable {
    private let isFired = Atomic<Bool>(false)

    /// Creates a signal that has not been given.
    package init() {}

    /// True once the signal was given.
    package var isSet: Bool { isFired.load(ordering: .acquiring) }

    /// Gives the signal: every waiter continues.
    package func set() {
        isFired.store(true, ordering: .releasing)
        Bell.shared.ring()
    }

    /// Blocks until the signal is given. Returns false after five minutes.
    @discardableResult
    package func wait() -> Bool { Bell.shared.wait { isSet } }

    /// Suspends until it is given.
    package func wait() async { await Bell.shared.wait { self.isSet } }
}

/// Suspends until the task is cancelled: a handler that never answers.
package func untilCancelled() async {
    let end = Signal()
    await withTaskCancellationHandler {
        await end.wait()
    } onCancel: {
        end.set()
    }
}

/// Notes in order, taken on any thread. Each note rings the bell of the process.
package final class Notes: Sendable {
    private let notes = Mutex<[String]>([])

    /// Creates empty notes.
    package init() {}

    /// All notes.
    package var all: [String] { notes.withLock { $0 } }

    /// The number of notes.
    package var count: Int { all.count }

    /// Adds one.
    package func add(_ note: String) {
        notes.withLock { $0.append(note) }
        Bell.shared.ring()
    }
}
