// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import Proxy
internal import Synchronization

/// The proxy's recent doings, a sample every few seconds: for the plots of the status page.
package final class ProxyHistory: Sendable {
    /// What happened between two samples.
    package struct Interval: Sendable {
        /// When it ended, in milliseconds since 1970.
        package var end: Int64
        /// How many exchanges ended per second.
        package var rate: Double
        /// The middle one's time, as the bound of its bucket, in microseconds; `nil`: there was none.
        package var median: UInt64?
        /// That of the slowest in a hundred.
        package var slowest: UInt64?
    }

    private struct Sample: Sendable {
        var at: Int64
        var whole: LatencyHistogram
    }

    /// The least time between two samples, in milliseconds.
    private static let pace: Int64 = 5000
    /// So many are kept: ten minutes and more.
    private static let most = 121

    private let samples = Mutex<[Sample]>([])

    /// Without any.
    package init() {}

    /// Takes a sample, unless the last one is too recent. `now`: in milliseconds since 1970.
    package func take(_ reading: ProxyReading, now: Int64) {
        var whole = LatencyHistogram()
        for upstream in reading.upstreams { whole.add(upstream.whole) }
        let sample = Sample(at: now, whole: whole)
        samples.withLock { samples in
            // A clock that was set back begins anew.
            if let last = samples.last, now < last.at { samples.removeAll() }
            guard samples.last.map({ now - $0.at >= Self.pace }) ?? true else { return }
            if samples.count >= Self.most { samples.removeFirst() }
            samples.append(sample)
        }
    }

    /// What happened, the oldest first.
    package var intervals: [Interval] {
        let samples = samples.withLock { $0 }
        return zip(samples, samples.dropFirst()).map { before, after in
            let counts = zip(after.whole.counts, before.whole.counts).map { $0 > $1 ? $0 - $1 : 0 }
            let count = counts.reduce(0, +)
            return Interval(
                end: after.at, rate: Double(count) * 1000 / Double(max(1, after.at - before.at)),
                median: Self.bound(of: counts, share: 0.5), slowest: Self.bound(of: counts, share: 0.99))
        }
    }

    /// The bound of the bucket in which that share of all is reached, in microseconds.
    static func bound(of counts: [UInt64], share: Double) -> UInt64? {
        let count = counts.reduce(0, +)
        guard count > 0 else { return nil }
        var sum: UInt64 = 0
        for (index, bucket) in counts.enumerated() {
            sum += bucket
            if Double(sum) >= share * Double(count) {
                return LatencyHistogram.bounds[min(index, LatencyHistogram.bounds.count - 1)]
            }
        }
        return LatencyHistogram.bounds.last
    }
}
