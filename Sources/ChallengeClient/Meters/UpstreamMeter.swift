// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One worker's counters of the exchanges with one upstream, used on the worker's loop only.
///
/// An upstream's client obtains its meter at creation, so that counting needs no lookup. The meter outlives the client,
/// so that no counter decreases when a reload creates another.
package final class UpstreamMeter {
    /// The end of an exchange.
    package enum End {
        /// A response of the upstream with that status.
        case response(status: Int)
        /// A local reply, which is counted elsewhere.
        case localReply
        /// A response with that status which broke off.
        case broken(status: Int)
        /// A caller that went away, or was too slow.
        case callerLost
    }

    /// The counts.
    package private(set) var reading: UpstreamReading

    /// Creates a meter at zero.
    package init(name: String) { reading = UpstreamReading(name: name) }

    /// Counts an exchange. `whole` and `own`: its duration, and the proxy's share of that, in nanoseconds.
    package func ended(_ end: End, whole: UInt64, own: UInt64) {
        switch end {
        case .response(let status): reading.count(status: status)
        case .localReply: break
        case .broken(let status):
            reading.count(status: status)
            reading.brokenResponses &+= 1
            return
        case .callerLost:
            reading.lostCallers &+= 1
            return
        }
        reading.whole.add(whole)
        reading.own.add(own)
    }

    /// Counts a challenge. Not called for a request without one.
    func met(_ challenge: String, _ outcome: ChallengeCount.Outcome) {
        reading.challenges[ChallengeCount(challenge: challenge, outcome: outcome), default: 0] &+= 1
    }
}

/// The meters of one worker by upstream. Counts stay after a reload has removed the upstream.
package final class UpstreamMeters {
    private var meters: [String: UpstreamMeter] = [:]

    init() {}

    func meter(of name: String) -> UpstreamMeter {
        if let known = meters[name] { return known }
        let made = UpstreamMeter(name: name)
        meters[name] = made
        return made
    }

    /// The counts of all meters.
    package var readings: [UpstreamReading] { meters.values.map(\.reading) }
}

/// The counts of the exchanges with one upstream.
package struct UpstreamReading: Sendable, Equatable {
    /// The status codes with separate counters; any other counts as `otherStatus`.
    package static let knownStatuses = 100..<600
    /// The status under which all others are counted.
    package static let otherStatus = 0

    /// The upstream's name.
    package let name: String
    /// The responses of the upstream by status less 100; the last element is for other statuses.
    private var statuses = [UInt64](repeating: 0, count: knownStatuses.count + 1)
    /// The durations of exchanges from head to end of response.
    ///
    /// Includes local replies, but not truncated responses.
    package internal(set) var whole = LatencyHistogram()
    /// Our share of the durations.
    ///
    /// Until the request is handed to its transfer, and from the end of the response until written. Excludes the
    /// upstream, logins, and slow callers.
    package internal(set) var own = LatencyHistogram()
    /// The number of exchanges that ended because the caller went away, or was too slow.
    package internal(set) var lostCallers: UInt64 = 0
    /// The number of truncated responses.
    package internal(set) var brokenResponses: UInt64 = 0
    /// The number of challenges, by name and outcome.
    package internal(set) var challenges: [ChallengeCount: UInt64] = [:]

    /// Creates a reading without counts.
    package init(name: String) { self.name = name }

    /// The responses by status, of those seen; `otherStatus` if not in `knownStatuses`.
    package var responses: [(status: Int, count: UInt64)] {
        statuses.indices.compactMap { index in
            guard statuses[index] > 0 else { return nil }
            let isKnown = index < Self.knownStatuses.count
            return (isKnown ? Self.knownStatuses.lowerBound + index : Self.otherStatus, statuses[index])
        }
    }

    /// Adds the counts of another worker.
    package mutating func add(_ other: UpstreamReading) {
        for index in statuses.indices { statuses[index] &+= other.statuses[index] }
        whole.add(other.whole)
        own.add(other.own)
        lostCallers &+= other.lostCallers
        brokenResponses &+= other.brokenResponses
        challenges.merge(other.challenges) { $0 &+ $1 }
    }

    mutating func count(status: Int) {
        let isKnown = Self.knownStatuses.contains(status)
        statuses[isKnown ? status - Self.knownStatuses.lowerBound : Self.knownStatuses.count] &+= 1
    }
}

/// A challenge and its outcome.
package struct ChallengeCount: Sendable, Hashable {
    /// The outcome of a challenge.
    package enum Outcome: String, Sendable, CaseIterable {
        /// A session was available or established, and the request was sent again.
        case answered
        /// No session was available, or the exchange ended before: a local reply, or no reply if the caller is gone.
        case failed
        /// The challenge went to the caller, because no further login would change it.
        case passed
        /// The request's body was gone, and could not be sent again.
        case notReplayable = "body-not-replayable"
    }

    /// The challenge's name, or the upstream's name for its MobileFirst server.
    package let challenge: String
    /// The outcome.
    package let outcome: Outcome

    /// Creates a challenge with its outcome.
    package init(challenge: String, outcome: Outcome) {
        self.challenge = challenge
        self.outcome = outcome
    }
}

/// A histogram of durations in buckets whose bounds double, from 64 µs to 67 s.
///
/// The bounds are fixed, so that histograms of all workers and daemons can be added. Each is a power of two in
/// microseconds, so that a time's bucket follows from its bit width without a search.
package struct LatencyHistogram: Sendable, Equatable {
    /// The exponent of the first bound, in microseconds.
    private static let lowest = 6
    /// The bounds of all buckets except the last, which is unbounded, in microseconds. A time belongs to the first
    /// bucket whose bound is not below it.
    package static let bounds: [UInt64] = (lowest...26).map { 1 << UInt64($0) }

    /// The count of each bucket, not cumulative; one more than there are bounds.
    package private(set) var counts = [UInt64](repeating: 0, count: bounds.count + 1)
    /// The sum of all times, in nanoseconds.
    package private(set) var nanoseconds: UInt64 = 0

    /// Creates an empty histogram.
    package init() {}

    /// The number of times.
    package var count: UInt64 { counts.reduce(0, &+) }

    /// Adds a time in nanoseconds.
    package mutating func add(_ nanoseconds: UInt64) {
        counts[Self.bucket(of: nanoseconds)] &+= 1
        self.nanoseconds &+= nanoseconds
    }

    /// Adds all counts of another histogram.
    package mutating func add(_ other: LatencyHistogram) {
        for (index, count) in other.counts.enumerated() { counts[index] &+= count }
        nanoseconds &+= other.nanoseconds
    }

    /// Returns the index of the bucket of a time in nanoseconds.
    package static func bucket(of nanoseconds: UInt64) -> Int {
        // The bit width of the microseconds rounded up, less one, is the exponent of the lowest bound not below the
        // time.
        let microseconds = nanoseconds == 0 ? 0 : (nanoseconds - 1) / 1000
        let width = UInt64.bitWidth - microseconds.leadingZeroBitCount
        return min(max(width - lowest, 0), bounds.count)
    }
}
