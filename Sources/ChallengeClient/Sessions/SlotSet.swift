// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Slots of a route as bits: copied with an exchange without a count of references. Holds those below 64.
struct SlotSet: Equatable {
    private var bits: UInt64 = 0

    /// No slots.
    init() {}

    /// Returns whether `slot` is in it.
    func contains(_ slot: Int) -> Bool { Self.canHold(slot) && bits & (1 << UInt64(slot)) != 0 }

    /// Adds `slot`, if it can be held.
    mutating func insert(_ slot: Int) {
        if Self.canHold(slot) { bits |= 1 << UInt64(slot) }
    }

    /// Returns whether `slot` is one of those that a set can hold.
    static func canHold(_ slot: Int) -> Bool { (0..<64).contains(slot) }
}
