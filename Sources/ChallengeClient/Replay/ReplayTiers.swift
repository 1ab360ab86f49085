// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How much of one request's body is kept for sending it again, in bytes: the beginning in memory, what follows in a
/// file. A body that is longer than both together is streamed, and cannot be sent again once more than that has gone.
package struct ReplayTiers: Sendable, Equatable {
    /// In memory.
    package var memory: Int
    /// Then in an unnamed file (`ReplaySpool`).
    package var disk: Int

    /// Tiers; nothing below zero.
    package init(memory: Int, disk: Int = 0) {
        self.memory = max(0, memory)
        self.disk = max(0, disk)
    }

    /// Nothing is kept.
    package static let none = ReplayTiers(memory: 0)

    /// Both together; saturates.
    package var total: Int {
        let (sum, overflow) = memory.addingReportingOverflow(disk)
        return overflow ? .max : sum
    }

    /// Returns whether a body of `length` bytes can be kept whole.
    package func fits(_ length: UInt64) -> Bool { length <= UInt64(total) }
}
