// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPTypes
internal import Synchronization

/// Difference between the server's clock and this machine's, learned from a response that refuses a signature's time, and the
/// last time at which a key was called expired.
///
/// Shared by all workers; kept until the configuration is loaded again.
final class AWSClock: Sendable {
    /// Differences below this, in milliseconds, are delays.
    private static let tolerance: Int64 = 30_000

    /// Time in which a key is not renewed again although the server calls it expired, in milliseconds.
    private static let renewalPause: Int64 = 60_000

    private let known = Atomic<Int64>(0)
    private let renewedAt = Atomic<Int64>(.min)

    init() {}

    /// Milliseconds by which the server's clock is ahead of this machine's; negative if it is behind.
    var difference: Int64 { known.load(ordering: .relaxed) }

    /// Server's clock minus this machine's, in milliseconds.
    func serverTime(at now: Int64) -> Int64 { now.saturatingAdd(difference) }

    /// Takes the server's time from the `Date` of `response`. Returns false if the difference was known already, or
    /// `Date` is missing.
    func learn(from response: ExaminedResponse, now: Int64) -> Bool {
        guard let date = response.fields[.date].flatMap(Moment.httpDate) else { return false }
        let found = date.saturatingSubtract(now)
        let next = found.magnitude >= Self.tolerance.magnitude ? found : 0
        let before = known.exchange(next, ordering: .relaxed)
        return next.saturatingSubtract(before).magnitude >= Self.tolerance.magnitude
    }

    /// Records that the server calls a key expired. Returns the earliest time of another key if one was obtained just now.
    func keyExpired(at now: Int64) -> Int64? {
        let next = renewedAt.load(ordering: .relaxed).saturatingAdd(Self.renewalPause)
        guard now >= next else { return next }
        renewedAt.store(now, ordering: .relaxed)
        return nil
    }
}
