// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// The configured health check of an upstream.
package struct UpstreamCheckPlan: Sendable, Equatable {
    /// Path and query of the request, relative to the upstream's own path.
    package var path: String
    /// The statuses that count as success.
    package var statuses: Set<Int>
    /// The time between two checks, varied by a tenth.
    package var period: Duration

    /// Creates a plan.
    package init(path: String, statuses: Set<Int> = [200], period: Duration = .seconds(30)) {
        self.path = path
        self.statuses = statuses
        self.period = period
    }
}

/// The current health of an upstream, by its checks.
package struct CheckReading: Sendable, Equatable {
    /// The health state.
    package enum State: Sendable, Equatable {
        /// The last check failed, for that reason.
        case down(String)
        /// No check was made yet, or no check is possible, for that reason.
        case unknown(String)
        /// The last check succeeded.
        case up
    }

    /// The health state.
    package var state: State
    /// The start of the state, in milliseconds since 1970.
    package var since: Int64
    /// Time of the last check, in milliseconds since 1970; `nil` before the first.
    package var askedAt: Int64?
    /// The duration of the last check, in nanoseconds.
    package var nanoseconds: UInt64 = 0
    /// Status of the last check's answer; `nil` without an answer.
    package var status: Int?
    /// The number of successful checks.
    package var passed: UInt64 = 0
    /// The number of failed checks, including those without an answer.
    package var failed: UInt64 = 0

    /// Creates a reading.
    package init(_ state: State, since: Int64) {
        self.state = state
        self.since = since
    }
}

/// The results of all health checks, by upstream.
package final class UpstreamCheckResults: Sendable {
    private let readings = Mutex<[String: CheckReading]>([:])

    init() {}

    /// The readings of all checked upstreams.
    package var all: [String: CheckReading] { readings.withLock { $0 } }

    /// Sets the checked upstreams; readings of upstreams that stay are preserved.
    package func setUpstreams(_ upstreams: [String], now: Int64) {
        readings.withLock { readings in
            let former = readings
            readings = [:]
            for name in upstreams {
                readings[name] = former[name] ?? CheckReading(.unknown("not checked yet"), since: now)
            }
        }
    }

    /// Records that a check was skipped for `reason`. Returns true if the state has changed.
    func recordSkip(_ upstream: String, because reason: String, now: Int64) -> Bool {
        update(upstream, .unknown(reason), now: now) { _ in }
    }

    /// Records the result of a check. Returns true if the state has changed.
    func recordResult(
        _ upstream: String, _ state: CheckReading.State, status: Int?, after nanoseconds: UInt64, now: Int64
    ) -> Bool {
        update(upstream, state, now: now) { reading in
            reading.askedAt = now
            reading.nanoseconds = nanoseconds
            reading.status = status
            if state == .up { reading.passed &+= 1 } else { reading.failed &+= 1 }
        }
    }

    private func update(
        _ upstream: String, _ state: CheckReading.State, now: Int64, _ change: (inout CheckReading) -> Void
    ) -> Bool {
        readings.withLock { readings in
            // A reload has removed the upstream meanwhile.
            guard var reading = readings[upstream] else { return false }
            let isChange = !reading.state.isLike(state)
            if isChange { reading.since = now }
            reading.state = state
            change(&reading)
            readings[upstream] = reading
            return isChange
        }
    }
}

extension CheckReading.State {
    /// Returns true if both are up, or down, or unknown for the same reason.
    fileprivate func isLike(_ other: Self) -> Bool {
        switch (self, other) {
        case (.down, .down), (.up, .up): true
        case (.unknown(let one), .unknown(let other)): one == other
        default: false
        }
    }
}
