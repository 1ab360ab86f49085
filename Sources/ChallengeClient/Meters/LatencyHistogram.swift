// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// How often something took how long: counts in buckets whose bounds double, from 64 µs to 67 s.
///
/// The bounds are fixed, so that those of all workers, and of all daemons, add up; and each is a power of two in
/// microseconds, so that the bucket of a time is the width of a number and no search.
package struct LatencyHistogram: Sendable, Equatable {
    /// The first bound is two to this power, in microseconds.
    private static let lowest = 6
    /// The bounds of all buckets but the last, which has none, in microseconds. A time belongs to the first bucket whose
    /// bound is not below it.
    package static let bounds: [UInt64] = (lowest...26).map { 1 << UInt64($0) }

    /// How many times fell into each bucket, those of the lower ones not included; one more than there are bounds.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// All times together, in nanoseconds.
    package private(set) var nanoseconds: UInt64 = 0

    /// Without any.
    package init() {}

    /// How many times there were.
    package var count: UInt64 { counts.reduce(0, &+) }

    /// Counts a time, in nanoseconds.
    package mutating func add(_ nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] &+= 1
        self.nanoseconds &+= nanoseconds
    }

    /// Adds those of another.
    package mutating func add(_ other: LatencyHistogram) {
        for (index, count) in other.counts.enumerated() { counts[index] &+= count }
        nanoseconds &+= other.nanoseconds
    }

    /// The index of the bucket of a time, in nanoseconds.
    package static func bucket(of nanoseconds: UInt64) -> Int {
        // Microseconds rounded up, less one: how many bits that has is the power of two that is just not below the time.
        let microseconds = nanoseconds == 0 ? 0 : (nanoseconds - 1) / 1000
        let width = UInt64.bitWidth - microseconds.leadingZeroBitCount
        return min(max(width - lowest, 0), bounds.count)
    }
}
