// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Load of a loop: its working time between waits, in total and at most.
public struct LoopActivity: Sendable, Equatable {
    /// Length of a period for which the longest turn is recorded, in nanoseconds.
    static let period: UInt64 = 30_000_000_000

    /// Total working time in nanoseconds; a loop that never waits adds one second per second.
    public private(set) var busy: UInt64 = 0
    /// Number of turns.
    public private(set) var turns: UInt64 = 0
    /// Longest turn of the current period and of the previous one, in nanoseconds.
    private var longest: UInt64 = 0
    private var longestBefore: UInt64 = 0
    private var periodEnd: UInt64 = 0

    init() {}

    /// Records a turn from `start` to `end`.
    mutating func turned(from start: LoopInstant, to end: LoopInstant) {
        let lasted = end.nanoseconds(since: start)
        busy &+= lasted
        turns &+= 1
        if end.nanoseconds >= periodEnd { beginPeriod(at: end) }
        if lasted > longest { longest = lasted }
    }

    /// Returns the longest turn of the last 30 to 60 seconds, in nanoseconds.
    ///
    /// Anything that waits for the loop is delayed by at most this. Reading changes nothing.
    public func longestTurn(at now: LoopInstant) -> UInt64 {
        if now.nanoseconds < periodEnd { return max(longest, longestBefore) }
        return now.nanoseconds - periodEnd < Self.period ? longest : 0
    }

    private mutating func beginPeriod(at now: LoopInstant) {
        longestBefore = now.nanoseconds - periodEnd < Self.period ? longest : 0
        longest = 0
        periodEnd = now.nanoseconds &+ Self.period
    }
}
