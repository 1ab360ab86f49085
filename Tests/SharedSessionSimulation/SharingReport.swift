// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The costs of a run.
struct SharingReport {
    /// Callers that were answered, and that were told of a failed login.
    var served = 0, failed = 0
    /// Waiting times of callers that got a session, in milliseconds.
    var waited: [Int64] = []
    /// The longest time from wanting a session to having it, or a failure.
    var longestWant: Int64 = 0
    /// Logins under leases, and alone.
    private(set) var leased = 0, alone = 0
    /// Sessions that came too late, as a later lease had been granted.
    var stale = 0
    /// Requests to the session store, in all and by the second.
    private(set) var commands = 0
    private(set) var bySecond: [Int64: Int] = [:]
    var server = SimulatedServer()

    mutating func begins(under generation: UInt64?) {
        if generation == nil { alone += 1 } else { leased += 1 }
    }

    mutating func count(at time: Int64) {
        commands += 1
        bySecond[time / 1_000, default: 0] += 1
    }

    var mostPerSecond: Int { bySecond.values.max() ?? 0 }

    /// The time within which that share of the callers had their session, in milliseconds.
    func percentile(_ share: Double) -> Int64 {
        let sorted = waited.sorted()
        guard !sorted.isEmpty else { return 0 }
        return sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
    }
}
