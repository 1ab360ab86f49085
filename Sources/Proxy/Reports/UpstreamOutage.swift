// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Period in which requests to an upstream end without its answer: unreachable, TLS, timeouts, broken HTTP.
package struct UpstreamOutage: Sendable, Equatable {
    /// Time without a failure after which the outage does not count as present, in milliseconds: there may have been no
    /// requests since.
    private static let fresh: Int64 = 60_000
    /// Number of failures after which every request counts as failing.
    private static let enough = 3

    /// Time of the first failure, in milliseconds since 1970.
    package let since: Int64
    /// Time of the last failure.
    package private(set) var last: Int64
    /// Number of failures.
    package private(set) var failures = 1
    /// The reason of the last failure, without secrets.
    package private(set) var reason: String
    /// Number of failures since the last answer.
    private var failuresInARow = 1

    /// True if there was an answer lately, so that not every request fails.
    package var isPartial: Bool { failuresInARow < failures && failuresInARow < Self.enough }

    /// Begins with a failure.
    package init(at now: Int64, reason: String) {
        (since, last) = (now, now)
        self.reason = reason
    }

    /// Records another failure.
    package mutating func failed(at now: Int64, reason: String) {
        last = now
        failures += 1
        failuresInARow += 1
        self.reason = reason
    }

    /// Records an answer in between.
    package mutating func answered() { failuresInARow = 0 }

    /// True if the last requests have all failed, at least three of them, and the last one within a minute.
    package func isTotal(at now: Int64) -> Bool {
        failuresInARow >= Self.enough && now >= last && now.saturatingSubtract(last) <= Self.fresh
    }
}
