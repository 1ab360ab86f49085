// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How busy a loop is: how long it worked between its waits, altogether and at most of late.
public struct LoopActivity: Sendable, Equatable {
    /// How long a period is of which the longest turn is kept, in nanoseconds.
    static let period: UInt64 = 30_000_000_000

    /// How long it has worked, in nanoseconds; rises by one second a second where it never waits.
    public private(set) var busy: UInt64 = 0
    /// How often it has turned.
    public private(set) var turns: UInt64 = 0
    /// The longest turn of the present period and of the one before, in nanoseconds.
    private var longest: UInt64 = 0
    private var longestBefore: UInt64 = 0
    private var periodEnd: UInt64 = 0

    init() {}

    /// A turn has lasted from `start` to `end`.
    mutating func turned(from start: LoopInstant, to end: LoopInstant) {
        let lasted = end.nanoseconds(since: start)
        busy &+= lasted
        turns &+= 1
        if end.nanoseconds >= periodEnd { beginPeriod(at: end) }
        if lasted > longest { longest = lasted }
    }

    /// The longest turn of the last half a minute or up to a minute, in nanoseconds. Whatever waits for the loop is late by so
    /// much at most. Who asks changes nothing about it.
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
