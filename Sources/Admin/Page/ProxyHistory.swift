// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
package import Proxy
internal import Synchronization

/// The recent history of the proxy, sampled every few seconds, for the plots of the status page.
package final class ProxyHistory: Sendable {
    /// The events between two samples.
    package struct Interval: Sendable {
        /// The end of the interval, in milliseconds since 1970.
        package var end: Int64
        /// The number of exchanges that ended per second.
        package var rate: Double
        /// The median duration, as the bound of its bucket, in microseconds; `nil` without exchanges.
        package var median: UInt64?
        /// The 99th percentile of the duration, likewise.
        package var percentile99: UInt64?
    }

    private struct Sample: Sendable {
        var at: Int64
        var whole: LatencyHistogram
    }

    /// The shortest time between two samples, in milliseconds.
    private static let sampleInterval: Int64 = 5000
    /// The number of samples: a little more than ten minutes.
    private static let sampleLimit = 121

    private struct State: Sendable {
        var samples: [Sample] = []
        var recent = RecentOutcomes()
    }

    private let state = Mutex(State())

    /// Makes an empty history.
    package init() {}

    /// Records a reading, and adds a sample of it unless the last one is too recent. `now` is in milliseconds since
    /// 1970.
    package func add(_ reading: ProxyReading, now: Int64) {
        state.withLock { state in
            state.recent.update(reading, now: now)
            // A clock that was set back starts a new history.
            if let last = state.samples.last, now < last.at { state.samples.removeAll() }
            guard state.samples.last.map({ now.saturatingSubtract($0.at) >= Self.sampleInterval }) ?? true else {
                return
            }
            var whole = LatencyHistogram()
            for upstream in reading.upstreams { whole.add(upstream.whole) }
            if state.samples.count >= Self.sampleLimit { state.samples.removeFirst() }
            state.samples.append(Sample(at: now, whole: whole))
        }
    }

    /// The outcomes by upstream, with the time at which each was last seen.
    package var recent: RecentOutcomes { state.withLock { $0.recent } }

    /// The intervals, the oldest first.
    package var intervals: [Interval] {
        let samples = state.withLock { $0.samples }
        return zip(samples, samples.dropFirst()).map { before, after in
            let counts = zip(after.whole.counts, before.whole.counts).map { $0 > $1 ? $0 - $1 : 0 }
            let count = counts.reduce(0, +)
            return Interval(
                end: after.at, rate: Double(count) * 1000 / Double(max(1, after.at - before.at)),
                median: Self.bound(of: counts, share: 0.5), percentile99: Self.bound(of: counts, share: 0.99))
        }
    }

    /// Returns the bound, in microseconds, of the bucket in which that share of all is reached.
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
