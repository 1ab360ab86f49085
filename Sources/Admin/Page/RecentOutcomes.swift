// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import ChallengeClient
package import Proxy

/// A kind of answer to the exchanges with an upstream.
package struct UpstreamOutcome: Sendable, Hashable {
    /// The source and meaning of an answer.
    package enum Kind: Sendable, Hashable {
        /// A local reply with that code.
        case reply(code: String)
        /// A response of the upstream, by the first digit of its status.
        case response(class: Int)
    }

    /// The kind of answer.
    package let kind: Kind
    /// True if it means that the request failed for a reason that is not the caller's: 5xx.
    package let isFailure: Bool

    /// Makes the outcome of responses with `status`.
    init(status: Int) {
        kind = .response(class: status / 100)
        isFailure = status / 100 == 5
    }

    /// Makes the outcome of local replies.
    init(_ reply: LocalReplyCount) {
        kind = .reply(code: reply.code.rawValue)
        isFailure = reply.status / 100 == 5
    }

    /// True if it is a response of the upstream below 400.
    var isGood: Bool {
        if case .response(let hundreds) = kind { (1...3).contains(hundreds) } else { false }
    }

    /// The name for people: `2xx`, or the code of a local reply.
    package var name: String {
        switch kind {
        case .reply(let code): code
        case .response(0): "other status"
        case .response(let hundreds): "\(hundreds)xx"
        }
    }
}

/// A counter with a memory of ten minutes.
package struct RecentCount: Sendable {
    private static let minutes = 10

    /// The count since the start.
    package private(set) var total: UInt64 = 0
    /// The time of the last rise, in milliseconds since 1970.
    package private(set) var lastAt: Int64 = 0
    /// The rises per minute; the index is the minute modulo the number of elements.
    private var rises = [UInt64](repeating: 0, count: minutes)
    /// The minute since 1970 of the last rise.
    private var minute: Int64 = 0

    /// Records a new total, and returns the rise. `now` is in milliseconds since 1970.
    mutating func update(_ total: UInt64, now: Int64) -> UInt64 {
        guard total > self.total else { return 0 }
        let rise = total - self.total
        clear(upTo: now / 60_000)
        rises[Self.index(of: minute)] &+= rise
        (self.total, lastAt) = (total, now)
        return rise
    }

    /// Returns the rise in the present minute and the nine before it.
    package func recent(now: Int64) -> UInt64 {
        var count = self
        count.clear(upTo: now / 60_000)
        return count.rises.reduce(0, &+)
    }

    private mutating func clear(upTo next: Int64) {
        // A clock that was set back starts over.
        let passed = next < minute ? Int64(Self.minutes) : min(next.saturatingSubtract(minute), Int64(Self.minutes))
        for step in 0..<passed { rises[Self.index(of: next.saturatingSubtract(step))] = 0 }
        minute = next
    }

    private static func index(of minute: Int64) -> Int {
        Int(exactly: minute.flooredDivision(by: Int64(minutes)).remainder) ?? 0
    }
}

/// The outcomes of exchanges by upstream, with the time at which each was last seen.
package struct RecentOutcomes: Sendable {
    /// The failures of an upstream since its last good answer.
    package struct Failing: Sendable {
        /// Their number.
        package var count: UInt64
        /// Time of the first failure, in milliseconds since 1970.
        package var since: Int64
        /// Time of the last failure.
        package var lastAt: Int64
        /// The name of the last one's outcome.
        package var name: String
    }

    private var counts: [String: [UpstreamOutcome: RecentCount]] = [:]
    /// The upstreams whose last exchanges all failed, by name.
    private var failing: [String: Failing] = [:]
    /// The time at which an exchange last began, in milliseconds since 1970.
    package private(set) var lastExchangeAt: Int64?
    private var begunExchanges: UInt64 = 0

    /// Makes an empty history.
    package init() {}

    /// Records the counters at `now`, in milliseconds since 1970.
    package mutating func update(_ reading: ProxyReading, now: Int64) {
        if reading.begunExchanges > begunExchanges {
            (begunExchanges, lastExchangeAt) = (reading.begunExchanges, now)
        }
        var totals: [String: [UpstreamOutcome: UInt64]] = [:]
        for upstream in reading.upstreams {
            for response in upstream.responses {
                totals[upstream.name, default: [:]][UpstreamOutcome(status: response.status), default: 0] &+=
                    response.count
            }
        }
        for (reply, count) in reading.replies {
            totals[reply.upstream, default: [:]][UpstreamOutcome(reply), default: 0] &+= count
        }
        for (upstream, totals) in totals { update(upstream, totals, now: now) }
    }

    mutating func update(_ upstream: String, _ totals: [UpstreamOutcome: UInt64], now: Int64) {
        var failures: UInt64 = 0
        var name: String?
        var isAnswering = false
        for (outcome, total) in totals.sorted(by: { $0.key.name < $1.key.name }) {
            let rise = counts[upstream, default: [:]][outcome, default: RecentCount()].update(total, now: now)
            guard rise > 0 else { continue }
            if outcome.isFailure {
                failures &+= rise
                name = outcome.name
            } else if case .response = outcome.kind {
                isAnswering = true
            }
        }
        if isAnswering {
            failing[upstream] = nil
        } else if let name {
            let known = failing[upstream]
            failing[upstream] = Failing(
                count: failures &+ (known?.count ?? 0), since: known?.since ?? now, lastAt: now, name: name)
        }
    }

    /// Returns the outcomes of an upstream: its responses by class, then local replies by code.
    package func outcomes(of upstream: String) -> [(outcome: UpstreamOutcome, count: RecentCount)] {
        (counts[upstream] ?? [:]).map { ($0.key, $0.value) }.sorted { $0.outcome.name < $1.outcome.name }
    }

    /// Returns the failures of an upstream if all its exchanges fail now: at least one did in the last ten minutes, and
    /// no good answer has been received since.
    package func failing(_ upstream: String, now: Int64) -> Failing? {
        failing[upstream].flatMap { now.saturatingSubtract($0.lastAt) <= Plot.window ? $0 : nil }
    }
}
