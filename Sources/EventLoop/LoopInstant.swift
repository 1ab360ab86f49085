// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A moment of the monotonic clock, in nanoseconds. Arithmetic saturates instead of trapping.
public struct LoopInstant: Sendable, Hashable, Comparable {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    public var nanoseconds: UInt64

    /// The moment `nanoseconds` after the clock's zero.
    @inlinable
    public init(nanoseconds: UInt64) {
        self.nanoseconds = nanoseconds
    }

    /// Reads the clock. On the loop's thread prefer `EventLoop.now`, which costs nothing.
    public static func read() -> LoopInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return LoopInstant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// Reads a clock that also counts the time in which the machine slept: for what others measure meanwhile.
    static func readContinuous() -> LoopInstant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return LoopInstant(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
    }

    /// A moment that never comes.
    @inlinable
    public static var never: LoopInstant { LoopInstant(nanoseconds: .max) }

    /// The moment that many milliseconds later; a negative number counts as none.
    public func advanced(byMilliseconds milliseconds: Int) -> LoopInstant {
        let (delay, tooLong) = UInt64(max(milliseconds, 0)).multipliedReportingOverflow(by: 1_000_000)
        return tooLong ? .never : advanced(byNanoseconds: delay)
    }

    /// The moment that many nanoseconds later.
    public func advanced(byNanoseconds delay: UInt64) -> LoopInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(delay)
        return overflow ? .never : LoopInstant(nanoseconds: sum)
    }

    /// Whole milliseconds from `self` until `deadline`, rounded up; 0 once it has come.
    public func milliseconds(until deadline: LoopInstant) -> Int {
        guard deadline > self else { return 0 }
        let distance = deadline.nanoseconds - nanoseconds
        return Int(distance / 1_000_000) + (distance % 1_000_000 == 0 ? 0 : 1)
    }

    /// Nanoseconds from `earlier` until `self`; none where that is later.
    public func nanoseconds(since earlier: LoopInstant) -> UInt64 {
        nanoseconds > earlier.nanoseconds ? nanoseconds - earlier.nanoseconds : 0
    }

    /// The moment `delay` later; a negative delay counts as none.
    public static func + (instant: LoopInstant, delay: Duration) -> LoopInstant {
        let (seconds, attoseconds) = delay.components
        guard seconds >= 0, attoseconds >= 0 else { return instant }
        let (whole, tooLong) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
        guard !tooLong else { return .never }
        return instant.advanced(byNanoseconds: whole).advanced(byNanoseconds: UInt64(attoseconds) / 1_000_000_000)
    }

    /// The time from `earlier` to `later`; negative if they are the other way round.
    public static func - (later: LoopInstant, earlier: LoopInstant) -> Duration {
        later >= earlier
            ? .nanoseconds(Int64(clamping: later.nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - later.nanoseconds))
    }

    /// Returns whether `left` comes before `right`.
    public static func < (left: LoopInstant, right: LoopInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}
