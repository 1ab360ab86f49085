// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The bounds of a session table, and how long it pauses after a login that failed.
public struct SessionLimits: Sendable {
    /// The most exchanges that may wait for logins at once, over all keys.
    public var waiters: Int
    /// The most keys that are kept. More come only from an upstream that names ever new scopes.
    public var keys: Int
    /// The first pause after an unknown outcome, in milliseconds; it doubles with each further one.
    public var firstPause: Int64
    /// The longest pause after an unknown outcome, in milliseconds, unless the server names a later time.
    public var longestPause: Int64
    /// The pause after a confirmation without a usable answer, in milliseconds.
    var confirmationPause: Int64 { 5_000 }

    /// The defaults are those of the configuration's `limits.waiters` and of a service that comes back within seconds.
    public init(waiters: Int = 1024, keys: Int = 1024, firstPause: Int64 = 1_000, longestPause: Int64 = 60_000) {
        self.waiters = waiters
        self.keys = max(1, keys)
        self.firstPause = firstPause
        self.longestPause = longestPause
    }

    /// The time for which callers are answered with `failure` at once, in milliseconds, before a login is tried again; `nil`: the
    /// next exchange may try at once.
    ///
    /// - Unknown outcomes back off with doubling and jitter (a half to the whole of the pause), and obey the server's
    ///   own time.
    /// - Attempts kept and locked accounts are asked about seldom: the question costs no attempt, but a request.
    /// - A handler that cancels was free to; nothing is to wait for.
    /// - A rejected or latched credential needs no pause: the latch itself keeps it from being sent, and a changed
    ///   credential is to be used at once. Likewise a credential that no source knew.
    func pause(after failure: LoginFailure, failures: Int, now: Int64, chance: Double) -> Int64? {
        if failure.isCancelled { return nil }
        let named = named(by: failure, now: now)
        switch failure.code {
        case .failed, .timedOut, .upstreamTLS:
            let doubled = min(longestPause, firstPause << Int64(min(max(failures - 1, 0), 16)))
            let jittered = doubled / 2 + Int64(Double(doubled / 2) * min(max(chance, 0), 1))
            return max(jittered, named ?? 0)
        case .accountLocked, .attemptsKept:
            return max(named ?? 0, min(longestPause, 5 * firstPause))
        case .latched, .rejected, .noCredential:
            return nil
        }
    }

    /// For how long, in milliseconds, the other hosts of a fleet are answered with `failure` in the place of a try of their own: the
    /// pause after the first, which doubles with each further one in a row, and the longest; `nil`: the next host may try at once.
    ///
    /// As above, except that a rejected value is told of for a moment: so that all who waited do not ask one after the other for a turn
    /// that would end at the latch. A latched credential, or one that no source knew, concerns the one host that has it.
    package func sharedPause(after failure: LoginFailure, now: Int64) -> (first: Int64, longest: Int64)? {
        if failure.isCancelled { return nil }
        let named = named(by: failure, now: now) ?? 0
        let first: Int64
        switch failure.code {
        case .failed, .timedOut, .upstreamTLS: first = max(firstPause, named)
        case .accountLocked, .attemptsKept: first = max(named, 5 * firstPause)
        case .rejected: return (Self.rejectionPause, Self.rejectionPause)
        case .latched, .noCredential: return nil
        }
        return (first, max(first, longestPause))
    }

    /// A server that names a later time is taken at its word for an hour.
    private static let longestNamed: Int64 = 3_600_000
    private static let rejectionPause: Int64 = 2_000

    private func named(by failure: LoginFailure, now: Int64) -> Int64? {
        failure.retryAt.map { min(max(0, $0.saturatingSubtract(now)), Self.longestNamed) }
    }
}
