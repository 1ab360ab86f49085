// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Tells the time in milliseconds since 1970, as MobileFirst counts.
package typealias DemoClock = @Sendable () -> Int64

/// The system's time.
func systemTime() -> Int64 {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_REALTIME, &time) == 0 else { return 0 }
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
}
