// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Counts down to nothing, for a thread that waits.
final class Countdown: Sendable {
    private let left: Atomic<Int>
    private let flag = DrainFlag()

    init(_ count: Int) {
        left = Atomic(count)
        if count <= 0 { flag.raise() }
    }

    /// One less.
    func countDown() {
        if left.wrappingSubtract(1, ordering: .acquiringAndReleasing).newValue == 0 { flag.raise() }
    }

    /// Whether nothing is left within `limit`.
    func wait(atMost limit: Duration) -> Bool { flag.wait(atMost: limit) }
}
