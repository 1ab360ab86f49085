// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import TestSupport

/// The choices of a simulation, all from one seed.
struct Chance {
    private var random: SplitMix
    /// The number of choices made.
    private(set) var state: UInt64 = 0

    /// Creates the choices of `seed`.
    init(seed: UInt64) { random = SplitMix(state: seed) }

    /// Returns a number in 0..<`count`.
    mutating func below(_ count: Int) -> Int {
        let number = random.next()
        state ^= number
        return Int(number % UInt64(max(count, 1)))
    }

    /// Returns a number in `range`.
    mutating func pick(_ range: ClosedRange<Int>) -> Int { range.lowerBound + below(range.count) }

    /// Returns true once in `count` times on average; never for 0.
    mutating func oneIn(_ count: Int) -> Bool { count > 0 && below(count) == 0 }

    /// Returns one of `items`.
    mutating func pick<Item>(_ items: [Item]) -> Item { items[below(items.count)] }

    /// Returns a number in 0..<1.
    mutating func fraction() -> Double { Double(random.next() >> 11) * 0x1p-53 }
}
