// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
package import Glibc

/// The clocks of the system.
package enum SystemClock {
    /// The wall clock, in milliseconds since 1970.
    @Sendable
    package static func wallClock() -> Int64 {
        let now = read(CLOCK_REALTIME)
        return Int64(now.tv_sec) &* 1000 &+ Int64(now.tv_nsec) / 1_000_000
    }

    /// Returns nanoseconds of a clock that never goes back and stops while the machine sleeps (CLOCK_MONOTONIC).
    package static func monotonicNanoseconds() -> UInt64 { nanoseconds(read(CLOCK_MONOTONIC)) }

    /// Returns nanoseconds of a clock that never goes back and counts the time that the machine sleeps
    /// (CLOCK_BOOTTIME).
    package static func bootNanoseconds() -> UInt64 { nanoseconds(read(CLOCK_BOOTTIME)) }

    /// Returns the time of CLOCK_MONOTONIC after `limit`, at most a century; now if the limit is negative.
    static func deadline(after limit: Duration) -> timespec {
        let now = read(CLOCK_MONOTONIC)
        let delay = min(limit.nanoseconds, 100 * 366 * 86_400 * 1_000_000_000)
        let nanoseconds = now.tv_nsec + Int(delay % 1_000_000_000)
        return timespec(
            tv_sec: now.tv_sec + Int(delay / 1_000_000_000) + nanoseconds / 1_000_000_000,
            tv_nsec: nanoseconds % 1_000_000_000)
    }

    private static func nanoseconds(_ time: timespec) -> UInt64 {
        UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    private static func read(_ clock: clockid_t) -> timespec {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        return time
    }
}

extension Duration {
    /// Duration as the kernel expects it; zero if negative.
    package var timespec: timespec {
        let nanoseconds = nanoseconds
        return Glibc.timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
    }

    /// Milliseconds, rounded up, as poll(2) takes them.
    package var pollTimeout: Int32 { Int32(clamping: millisecondsRoundedUp) }
}
