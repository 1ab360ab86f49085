// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Admin
internal import Basics
internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials

/// Schedule of retries for state that could not be written to the disk. A value; times are in ms.
struct StateRetries {
    static let (shortestPause, longestPause): (Int64, Int64) = (1_000, 300_000)

    private var pause = Self.shortestPause
    /// Time of the next attempt; `nil` while nothing is unwritten.
    private var next: Int64?

    /// Returns true if the state must be written again now. Each attempt in a row doubles the pause.
    mutating func isDue(hasUnwritten: Bool, now: Int64) -> Bool {
        guard hasUnwritten else {
            self = StateRetries()
            return false
        }
        guard let due = next else {
            next = now.saturatingAdd(pause)
            return false
        }
        guard now >= due else { return false }
        pause = min(2 * pause, Self.longestPause)
        next = now.saturatingAdd(pause)
        return true
    }
}

extension DaemonContext {
    /// True if a latch, a one-time password's step, a refresh token or the like could not be written.
    var hasUnwrittenState: Bool { !services.gate.unwritten.isEmpty || state.hasUnsaved }

    /// State that could not be written; nil if all of it is on disk.
    var unwrittenState: UnwrittenState? {
        let (changes, failures) = (services.gate.unwritten, state.failures)
        guard !changes.isEmpty || !failures.isEmpty else { return nil }
        let reason = changes.isEmpty ? failures.min { $0.key < $1.key }?.value.reason : unwrittenLog.lastReason
        return UnwrittenState(changes, values: failures.count, directory: stateDirectory, reason: reason ?? "")
    }

    /// Begins to write the state again that could not be written.
    func rewriteState() {
        services.gate.retryWrites()
        state.retrySaves()
    }
}
