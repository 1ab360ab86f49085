// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Limits of a session table, and its pauses after failed logins.
public struct SessionLimits: Sendable {
    /// Maximum exchanges that wait for logins at once, over all keys.
    public var waiters: Int
    /// Maximum number of keys; only an upstream that names ever new scopes needs more.
    public var keys: Int
    /// First pause after an unknown outcome in ms, doubled with each further one.
    public var firstPause: Int64
    /// Maximum pause after an unknown outcome in ms, unless the server names a later time.
    public var longestPause: Int64
    /// Pause after a confirmation without a usable answer, in ms.
    var confirmationPause: Int64 { 5_000 }

    /// Creates limits; the defaults match `limits.waiters` and a service that recovers within seconds.
    public init(waiters: Int = 1024, keys: Int = 1024, firstPause: Int64 = 1_000, longestPause: Int64 = 60_000) {
        self.waiters = waiters
        self.keys = max(1, keys)
        self.firstPause = firstPause
        self.longestPause = longestPause
    }

    /// Returns the time in ms for which callers get `failure` at once; nil allows another login at once.
    ///
    /// - Unknown outcomes back off with doubling and jitter (half to all of the pause), and respect the server's time.
    /// - Kept attempts and locked accounts are checked rarely: the check costs no attempt, but a request.
    /// - A handler may cancel freely, without a pause.
    /// - A rejected or latched credential needs no pause: the latch prevents sending, and a changed credential is to be
    ///   used at once. A missing credential needs no pause either.
    func pause(after failure: LoginFailure, failures: Int, now: Int64, chance: Double) -> Int64? {
        // The value itself waits: `login`, a change, or another process may end that at once.
        if failure.isCancelled || failure.isHeldBack { return nil }
        let named = named(by: failure, now: now)
        switch failure.code {
        case .failed, .timedOut, .upstreamTLS:
            let doubled = min(longestPause, firstPause << Int64(min(max(failures - 1, 0), 16)))
            let jittered = doubled / 2 + Int64(Double(doubled / 2) * min(max(chance, 0), 1))
            return max(jittered, named ?? 0)
        case .accountLocked, .attemptsKept:
            return max(named ?? 0, min(longestPause, 5 * firstPause))
        case .bodyTooLong, .latched, .rejected, .noCredential, .unsignable:
            return nil
        }
    }

    /// Returns the first and longest pause in ms for other nodes; nil allows another login at once.
    ///
    /// The first pause doubles with each further failure in a row. As above, except that a rejected value causes a
    /// short pause, so that the waiting nodes do not all ask in turn for a login that would end at the latch. A latched
    /// or missing credential concerns one node only.
    package func sharedPause(after failure: LoginFailure, now: Int64) -> (first: Int64, longest: Int64)? {
        if failure.isCancelled { return nil }
        let named = named(by: failure, now: now) ?? 0
        let first: Int64
        switch failure.code {
        case .failed, .timedOut, .upstreamTLS: first = max(firstPause, named)
        case .accountLocked, .attemptsKept: first = max(named, 5 * firstPause)
        case .rejected: return (Self.rejectionPause, Self.rejectionPause)
        case .bodyTooLong, .latched, .noCredential, .unsignable: return nil
        }
        return (first, max(first, longestPause))
    }

    /// Maximum accepted delay that a server names: an hour.
    private static let longestNamed: Int64 = 3_600_000
    private static let rejectionPause: Int64 = 2_000

    private func named(by failure: LoginFailure, now: Int64) -> Int64? {
        failure.retryAt.map { min(max(0, $0.saturatingSubtract(now)), Self.longestNamed) }
    }
}

/// Pause after failed logins of one session key.
struct BackOff: Sendable {
    /// Last failure with its time; nil if a login has succeeded since.
    private(set) var failure: (reason: LoginFailure, at: Int64)?
    /// End of the pause in ms since 1970.
    private(set) var until: Int64 = 0
    private var count = 0

    /// Returns the failure to answer callers with at once; nil if a login may be tried.
    func refusal(now: Int64) -> LoginFailure? { until > now ? failure?.reason : nil }

    /// Records a failed login; `chance` is a random number in 0..<1.
    mutating func record(_ failure: LoginFailure, _ limits: SessionLimits, now: Int64, chance: Double) {
        count = min(count + 1, 16)
        let pause = limits.pause(after: failure, failures: count, now: now, chance: chance)
        until = pause.map { now.saturatingAdd($0) } ?? 0
        self.failure = (failure, now)
    }
}
