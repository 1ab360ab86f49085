// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// How many of something there are on all workers together, and how many there may be.
///
/// One number for all, since the kernel deals callers out to the workers as it likes: with a share for each, one would
/// refuse callers while another has room.
final class SharedCount: Sendable {
    private let count = Atomic<Int>(0)
    private let limit: Atomic<Int>

    /// A count at zero. `nil`: as many as there are.
    init(limit: Int?) { self.limit = Atomic(limit ?? .max) }

    /// Sets another limit; those who are in stay.
    func setLimit(_ limit: Int?) { self.limit.store(limit ?? .max, ordering: .relaxed) }

    /// Whether there is room for one more, who is counted then.
    func enter() -> Bool {
        if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit.load(ordering: .relaxed) { return true }
        leave()
        return false
    }

    /// One less.
    func leave() { count.wrappingSubtract(1, ordering: .relaxed) }
}

/// The bounds that all workers keep together.
struct SharedCounts: Sendable {
    /// Connections of callers.
    let callers: SharedCount
    /// Exchanges.
    let exchanges: SharedCount
}
