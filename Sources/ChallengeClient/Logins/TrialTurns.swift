// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop
internal import Synchronization

/// Turns of logins whose value a request of a caller sends first (Basic, Digest). They end with the server's verdict.
///
/// Until then, another process with the same state would send the same value, which may be wrong.
final class TrialTurns: Sendable {
    private let turns = Mutex<[SessionKey: LoginTurn]>([:])

    /// Keeps the turn until the verdict on the session of `key`, but not longer than `limit`.
    func keep(_ turn: LoginTurn, for key: SessionKey, within limit: LoginLimit) {
        turns.withLock { turns -> LoginTurn? in
            defer { turns[key] = turn }
            return turns[key]
        }?.end()
        limit.loop.execute { [self] in
            // The loop retains the timer until it fires, and a turn may retain the loop.
            let timer = LazyTimer(loop: limit.loop)
            timer.onExpiry = { [weak self, weak turn] in
                if let turn { self?.end(turn, of: key) }
            }
            timer.arm(at: limit.loop.now + LoopDelay(limit.time))
        }
    }

    /// Returns true if a turn is kept for `key`.
    func isKept(for key: SessionKey) -> Bool { turns.withLock { $0[key] != nil } }

    /// Returns the turn kept for `key`; the caller ends it.
    func take(_ key: SessionKey) -> LoginTurn? { turns.withLock { $0.removeValue(forKey: key) } }

    /// Ends the turn of `key` if no request tries its session any more.
    func settle(_ key: SessionKey, by gate: SharedAttemptGate) {
        guard isKept(for: key), !gate.read({ $0.sessions.isUndecided(key) }) else { return }
        take(key)?.end()
    }

    private func end(_ turn: LoginTurn, of key: SessionKey) {
        let isKept = turns.withLock { turns in
            guard turns[key] === turn else { return false }
            turns[key] = nil
            return true
        }
        if isKept { turn.end() }
    }
}
