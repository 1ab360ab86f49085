// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// A value that one thread puts down once and others wait for, blocking. For start-up and reload only.
final class Handover<Value: Sendable>: Sendable {
    private enum State: Sendable {
        case empty
        case there(Value?)
    }

    private let state = Mutex(State.empty)

    /// Puts the value down; `nil`: there will be none.
    func put(_ value: Value?) { state.withLock { $0 = .there(value) } }

    /// The value, once it is there. Looks again every 100 µs: what it waits for takes about as long as that.
    func wait() -> Value? {
        while true {
            if case .there(let value) = state.withLock({ $0 }) { return value }
            usleep(100)
        }
    }
}

/// Counts down to zero, from any thread.
final class Counter: Sendable {
    private let left: Atomic<Int>

    init(_ count: Int) { left = Atomic(count) }

    /// Returns whether this was the last.
    func countDown() -> Bool { left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}
