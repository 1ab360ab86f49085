// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Testing

@Suite("A histogram of times")
struct LatencyHistogramTests {
    @Test("a time is counted in the first bucket whose bound is not below it, to the nanosecond")
    func bounds() {
        for (index, bound) in LatencyHistogram.bounds.enumerated() {
            #expect(LatencyHistogram.bucket(of: bound * 1000 - 1) == index)
            #expect(LatencyHistogram.bucket(of: bound * 1000) == index)
            #expect(LatencyHistogram.bucket(of: bound * 1000 + 1) == index + 1)
        }
        #expect(LatencyHistogram.bucket(of: 0) == 0)
        #expect(LatencyHistogram.bucket(of: .max) == LatencyHistogram.bounds.count)
    }

    @Test("the bounds of a histogram are 64 µs and their doubles, up to 67 s")
    func range() {
        let bounds = LatencyHistogram.bounds
        #expect(bounds.first == 64 && bounds.last == 67_108_864)
        #expect(zip(bounds, bounds.dropFirst()).allSatisfy { $0 * 2 == $1 })
    }

    @Test("two histograms add up, bucket by bucket and in their sum")
    func sums() {
        var one = LatencyHistogram()
        var other = LatencyHistogram()
        for time: UInt64 in [0, 64_000, 64_001, 5_000_000, .max / 4] { one.add(time) }
        for time: UInt64 in [1, 2_000_000_000] { other.add(time) }
        var both = one
        both.add(other)
        #expect(both.count == 7)
        #expect(both.nanoseconds == one.nanoseconds + other.nanoseconds)
        #expect(both.counts.first == 3)
        #expect(zip(both.counts, zip(one.counts, other.counts)).allSatisfy { $0 == $1.0 + $1.1 })
    }
}
