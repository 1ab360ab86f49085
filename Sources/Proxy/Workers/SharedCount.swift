// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// How many of something there are on all workers together, and how many there may be.
///
/// One number for all, since the kernel deals callers out to the workers as it likes: with a share for each, one would
/// refuse callers while another has room.
final class SharedCount: Sendable {
    private let entered = Atomic<Int>(0)
    private let most: Atomic<Int>

    /// A count at zero. `nil`: as many as there are.
    init(limit: Int?) { most = Atomic(limit ?? .max) }

    /// How many there are now.
    var count: Int { entered.load(ordering: .relaxed) }

    /// How many there may be.
    var limit: Int { most.load(ordering: .relaxed) }

    /// Sets another limit; those who are in stay.
    func setLimit(_ limit: Int?) { most.store(limit ?? .max, ordering: .relaxed) }

    /// Returns whether there is room for one more, who is counted then.
    func enter() -> Bool {
        if entered.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
        leave()
        return false
    }

    /// One less.
    func leave() { entered.wrappingSubtract(1, ordering: .relaxed) }
}

/// The bounds that all workers keep together.
struct SharedCounts: Sendable {
    /// Connections of callers.
    let callers: CallerPlaces
    /// Exchanges.
    let exchanges: SharedCount
}
