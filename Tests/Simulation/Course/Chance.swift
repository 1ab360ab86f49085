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

/// Events that may happen next, in any order: messages on their way, servers at work, disks that write.
struct Agenda {
    private var events: [() -> Void] = []
    /// Events whose time has not come, in ms since 1970.
    private var late: [(at: Int64, event: () -> Void)] = []

    /// The number of events that may happen now.
    var count: Int { events.count }
    /// True if nothing happens by itself any more.
    var isEmpty: Bool { events.isEmpty && late.isEmpty }

    /// Adds an event.
    mutating func add(_ event: @escaping () -> Void) { events.append(event) }

    /// Adds an event that may happen at a time, and later.
    mutating func add(at time: Int64, _ event: @escaping () -> Void) { late.append((time, event)) }

    /// Lets the events happen whose time has come by `now`.
    mutating func wake(at now: Int64) {
        guard late.contains(where: { $0.at <= now }) else { return }
        events += late.filter { $0.at <= now }.map(\.event)
        late.removeAll { $0.at <= now }
    }

    /// Removes and returns an event.
    mutating func take(using chance: inout Chance) -> (() -> Void)? {
        guard !events.isEmpty else { return nil }
        events.swapAt(chance.below(events.count), events.count - 1)
        return events.removeLast()
    }
}
