// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Counters of what was kept of requests' bodies and sent again. Each is written by all workers with one relaxed
/// addition, per window or per exchange.
package final class ReplayFigures: Sendable {
    private let inUse = Atomic<Int>(0)
    private let fromMemory = Atomic<Int>(0)
    private let fromDisk = Atomic<Int>(0)
    private let fromCallers = Atomic<Int>(0)
    private let unreplayable = Atomic<Int>(0)

    /// Bytes of bodies that are on disk now.
    package var bytesInUse: Int { inUse.load(ordering: .relaxed) }
    /// Bytes ever sent again from memory.
    package var bytesFromMemory: Int { fromMemory.load(ordering: .relaxed) }
    /// Bytes ever sent again from disk.
    package var bytesFromDisk: Int { fromDisk.load(ordering: .relaxed) }
    /// Bytes of requests that were sent again which came straight from the caller then: what follows that which had been sent
    /// the first time.
    package var bytesFromCallers: Int { fromCallers.load(ordering: .relaxed) }
    /// Exchanges ever answered by `body-not-replayable`.
    package var unreplayableExchanges: Int { unreplayable.load(ordering: .relaxed) }

    /// Counters at zero.
    init() {}

    /// Counts bytes on disk, or takes them back; returns the new number.
    @discardableResult
    func use(_ count: Int) -> Int { inUse.wrappingAdd(count, ordering: .relaxed).newValue }

    func replayed(memory: Int, disk: Int, stream: Int) {
        if memory > 0 { fromMemory.wrappingAdd(memory, ordering: .relaxed) }
        if disk > 0 { fromDisk.wrappingAdd(disk, ordering: .relaxed) }
        if stream > 0 { fromCallers.wrappingAdd(stream, ordering: .relaxed) }
    }

    func wasNotReplayable() { unreplayable.wrappingAdd(1, ordering: .relaxed) }
}
