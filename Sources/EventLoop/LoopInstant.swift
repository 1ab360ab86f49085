// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import System

/// Instant of the monotonic clock, in nanoseconds. Arithmetic saturates instead of trapping.
public struct LoopInstant: Sendable, Hashable, Comparable {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    public var nanoseconds: UInt64

    /// Creates the instant `nanoseconds` after the clock's zero.
    @inlinable
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Reads the clock. On the loop's thread prefer `EventLoop.now`, which costs nothing.
    public static func read() -> LoopInstant {
        LoopInstant(nanoseconds: SystemClock.monotonicNanoseconds())
    }

    /// Reads a clock that includes suspend time, for durations that others measure meanwhile.
    static func readContinuous() -> LoopInstant {
        LoopInstant(nanoseconds: SystemClock.bootNanoseconds())
    }

    /// Instant that is never reached.
    @inlinable
    public static var never: LoopInstant { LoopInstant(nanoseconds: .max) }

    /// Returns the instant that many milliseconds later; a negative number counts as zero.
    public func advanced(byMilliseconds milliseconds: Int) -> LoopInstant {
        let (delay, tooLong) = UInt64(max(milliseconds, 0)).multipliedReportingOverflow(by: 1_000_000)
        return tooLong ? .never : advanced(byNanoseconds: delay)
    }

    /// Returns the instant that many nanoseconds later.
    public func advanced(byNanoseconds delay: UInt64) -> LoopInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(delay)
        return overflow ? .never : LoopInstant(nanoseconds: sum)
    }

    /// Returns the milliseconds until `deadline`, rounded up; 0 once it is reached.
    public func milliseconds(until deadline: LoopInstant) -> Int {
        guard deadline > self else { return 0 }
        let distance = deadline.nanoseconds - nanoseconds
        return Int(distance / 1_000_000) + (distance % 1_000_000 == 0 ? 0 : 1)
    }

    /// Returns the nanoseconds since `earlier`; 0 if that is later.
    public func nanoseconds(since earlier: LoopInstant) -> UInt64 {
        nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0
    }

    /// Returns the instant `delay` later; a negative delay counts as zero.
    public static func + (instant: LoopInstant, delay: Duration) -> LoopInstant {
        instant.advanced(byNanoseconds: delay.nanoseconds)
    }

    /// Returns the time from `earlier` to `later`, negative if they are swapped.
    public static func - (later: LoopInstant, earlier: LoopInstant) -> Duration {
        later >= earlier
            ? .nanoseconds(Int64(clamping: later.nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - later.nanoseconds))
    }

    /// Returns true if `left` comes before `right`.
    public static func < (left: LoopInstant, right: LoopInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

/// Duration in the loop's unit, for timeouts that every request sets.
///
/// Adding to an instant is one addition, whereas a `Duration` takes 128-bit divisions.
public struct LoopDelay: Sendable, Hashable {
    /// Nanoseconds; a duration of centuries saturates, so its deadline is never reached.
    public let nanoseconds: UInt64

    /// Converts `duration`; a negative one becomes zero.
    public init(_ duration: Duration) {
        nanoseconds = (LoopInstant(nanoseconds: 0) + duration).nanoseconds
    }

    /// Returns the instant `delay` after `instant`.
    public static func + (instant: LoopInstant, delay: LoopDelay) -> LoopInstant {
        instant.advanced(byNanoseconds: delay.nanoseconds)
    }
}
