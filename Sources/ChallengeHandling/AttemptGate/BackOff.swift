// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The pause after logins of one session key that failed.
struct BackOff: Sendable {
    /// The last failure and its time; `nil` if a login has succeeded since.
    private(set) var failure: (reason: LoginFailure, at: Int64)?
    /// The end of the pause, in milliseconds since 1970.
    private(set) var until: Int64 = 0
    private var count = 0

    /// The failure that callers are answered with at once; `nil` if a login may be tried.
    func refusal(now: Int64) -> LoginFailure? { until > now ? failure?.reason : nil }

    /// A login has failed. `chance` is a random number in 0..<1.
    mutating func note(_ failure: LoginFailure, _ limits: SessionLimits, now: Int64, chance: Double) {
        count = min(count + 1, 16)
        let pause = limits.pause(after: failure, failures: count, now: now, chance: chance)
        until = pause.map { now.saturatingAdd($0) } ?? 0
        self.failure = (failure, now)
    }
}
