// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// What is asked of an upstream from time to time, to know whether it serves.
package struct UpstreamCheckPlan: Sendable, Equatable {
    /// Path and query, below the upstream's own path as those of callers are.
    package var path: String
    /// The statuses of a good answer.
    package var statuses: Set<Int>
    /// How often it is asked, give or take a tenth.
    package var period: Duration

    /// A plan.
    package init(path: String, statuses: Set<Int> = [200], period: Duration = .seconds(30)) {
        self.path = path
        self.statuses = statuses
        self.period = period
    }
}

/// What is known of an upstream by its checks.
package struct CheckReading: Sendable, Equatable {
    /// How it stands.
    package enum State: Sendable, Equatable {
        /// The last answer was not as it should be, or there was none; why.
        case down(String)
        /// Nothing was asked yet, or nothing may be asked; why.
        case unknown(String)
        /// The last answer was good.
        case up
    }

    /// How it stands.
    package var state: State
    /// Since when, in milliseconds since 1970.
    package var since: Int64
    /// When it was asked last, in milliseconds since 1970; `nil`: never.
    package var askedAt: Int64?
    /// How long the last answer took, in nanoseconds.
    package var nanoseconds: UInt64 = 0
    /// How many answers were good, and how many not.
    package var passed: UInt64 = 0
    /// How many were not, those that did not come included.
    package var failed: UInt64 = 0

    /// A reading.
    package init(_ state: State, since: Int64) {
        self.state = state
        self.since = since
    }
}

/// The results of all checks, by upstream.
package final class CheckBook: Sendable {
    private let readings = Mutex<[String: CheckReading]>([:])

    init() {}

    /// What is known, by upstream; those without a check are not in it.
    package var all: [String: CheckReading] { readings.withLock { $0 } }

    /// From now on these upstreams are checked, and no others; what is known of them stays.
    package func keep(_ upstreams: [String], now: Int64) {
        readings.withLock { readings in
            let former = readings
            readings = [:]
            for name in upstreams {
                readings[name] = former[name] ?? CheckReading(.unknown("not asked yet"), since: now)
            }
        }
    }

    /// Nothing is asked, for that reason. Whether that is news.
    func skipped(_ upstream: String, because reason: String, now: Int64) -> Bool {
        enter(upstream, .unknown(reason), now: now) { _ in }
    }

    /// An answer came, or none did. Whether the state has changed by it.
    func asked(_ upstream: String, _ state: CheckReading.State, after nanoseconds: UInt64, now: Int64) -> Bool {
        enter(upstream, state, now: now) { reading in
            reading.askedAt = now
            reading.nanoseconds = nanoseconds
            if state == .up { reading.passed &+= 1 } else { reading.failed &+= 1 }
        }
    }

    private func enter(
        _ upstream: String, _ state: CheckReading.State, now: Int64, _ change: (inout CheckReading) -> Void
    ) -> Bool {
        readings.withLock { readings in
            // A reload has left it out meanwhile.
            guard var reading = readings[upstream] else { return false }
            let isNews = !reading.state.isLike(state)
            if isNews { reading.since = now }
            reading.state = state
            change(&reading)
            readings[upstream] = reading
            return isNews
        }
    }
}

extension CheckReading.State {
    /// Returns whether both are up, or down, or unknown for the same reason.
    fileprivate func isLike(_ other: Self) -> Bool {
        switch (self, other) {
        case (.down, .down), (.up, .up): true
        case (.unknown(let one), .unknown(let other)): one == other
        default: false
        }
    }
}
