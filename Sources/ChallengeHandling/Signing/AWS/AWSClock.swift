// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Synchronization

/// Difference between the server's clock and this machine's, learned from a response that refuses a signature's time.
///
/// Shared by all workers; kept until the configuration is loaded again.
final class AWSClock: Sendable {
    /// Differences below this, in milliseconds, are delays.
    private static let tolerance: Int64 = 30_000

    private let difference = Atomic<Int64>(0)

    init() {}

    /// Returns the server's time at `now`, both in milliseconds since 1970.
    func serverTime(at now: Int64) -> Int64 {
        now.saturatingAdd(difference.load(ordering: .relaxed))
    }

    /// Takes the server's time from the `Date` of `response`.
    ///
    /// Returns the difference in milliseconds if the clocks differ; positive if this machine's is behind.
    func learn(from response: ExaminedResponse, now: Int64) -> Int64? {
        guard let date = response.fields[.date].flatMap(Moment.httpDate) else { return nil }
        let learned = date.saturatingSubtract(now)
        let differs = learned.magnitude >= Self.tolerance.magnitude
        difference.store(differs ? learned : 0, ordering: .relaxed)
        return differs ? learned : nil
    }
}
