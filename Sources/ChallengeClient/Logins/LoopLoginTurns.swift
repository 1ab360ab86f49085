// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// Turns of logins by the locks that the processes with one state share. Waits on a loop.
struct LoopLoginTurns: LoginTurns {
    /// The time after which a disk that does not answer is not waited for: the login then runs without its lock.
    static let longestLocking = Duration.seconds(2)
    private static let pause = Duration.milliseconds(50)

    let locks: any LoginLocks
    let loop: EventLoop
    /// The maximum time to wait for other logins.
    let limit: Duration

    func take(_ name: String, waiting: @escaping @Sendable () -> Void) async -> LoginTurn? {
        let began = loop.clockNow
        var hasWaited = false
        while !Task.isCancelled {
            if case .taken(let turn) = await lock(name) { return turn }
            if !hasWaited { waiting() }
            hasWaited = true
            guard loop.clockNow - began < limit else { return nil }
            await loop.wait(for: Self.pause)
        }
        return nil
    }

    private func lock(_ name: String) async -> LoginLockResult {
        await LoginDeadline(on: loop).outcome(within: Self.longestLocking, late: .taken(LoginTurn())) { [locks] in
            await locks.lock(name)
        }
    }
}

extension EventLoop {
    /// Waits on this loop, without blocking it.
    fileprivate func wait(for time: Duration) async {
        await withCheckedContinuation { continuation in
            execute { [self] in
                let timer = LazyTimer(loop: self)
                timer.onExpiry = { continuation.resume() }
                timer.arm(at: now + LoopDelay(time))
            }
        }
    }
}
