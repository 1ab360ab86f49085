// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Synchronization

/// Credentials that are looked up at once, for a thread that waits for all of them.
final class FoundCredentials: Sendable {
    private let found = Mutex<[String: Credential]>([:])
    private let left: Countdown

    init(waitingFor count: Int) { left = Countdown(count) }

    /// One look-up is over.
    func take(_ name: String, _ credential: Credential?) {
        found.withLock { $0[name] = credential }
        left.countDown()
    }

    /// What was found by then.
    func wait(atMost limit: Duration) -> [String: Credential] {
        _ = left.wait(atMost: limit)
        return found.withLock { $0 }
    }
}
