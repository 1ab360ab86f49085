// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Synchronization

/// Turns of logins among all processes that use the same state.
///
/// Two processes that log in at the same time would each send a wrong value, and both the same rotated refresh token.
public protocol LoginTurns: Sendable {
    /// Waits until no other login has the turn of `name`, and takes it.
    ///
    /// When the call returns, the state has been read again: latches that other processes have closed count from now on. `waiting`
    /// is called once if another login has the turn. Returns `nil`, without the turn, if the wait is cancelled or takes too long.
    func take(_ name: String, waiting: @escaping @Sendable () -> Void) async -> LoginTurn?
}

/// The turn of one login, from `LoginTurns.take` until `end` or the last reference is released.
public final class LoginTurn: Sendable {
    private let release: Mutex<(@Sendable () -> Void)?>

    /// Creates a turn; `release` is called once, at its end.
    public init(_ release: @escaping @Sendable () -> Void = {}) { self.release = Mutex(release) }

    deinit { end() }

    /// Ends the turn; does nothing if it has ended.
    public func end() {
        let release = release.withLock { release in
            defer { release = nil }
            return release
        }
        release?()
    }
}

/// Turns of a program whose state no other process uses: none has to be waited for.
public struct UnsharedTurns: LoginTurns {
    /// Creates turns.
    public init() {}

    /// Returns a turn at once.
    public func take(_ name: String, waiting: @escaping @Sendable () -> Void) -> LoginTurn? { LoginTurn() }
}

/// Locks of logins, which all processes with the same state share.
package protocol LoginLocks: Sendable {
    /// Takes the lock of `name`, unless another login has it, in whichever process. Does not wait for that login.
    ///
    /// Reads the state again before it returns a turn. If locking does not work, the failure is logged and a turn returned: the login
    /// then does what it would do alone.
    func lock(_ name: String) async -> LoginLockResult
}

/// Result of `LoginLocks.lock`.
package enum LoginLockResult: Sendable {
    /// Another login has the lock.
    case held
    /// The lock is taken until the end of the turn.
    case taken(LoginTurn)
}

extension Conversation {
    /// Runs `body` in the turn of `name`, a login of `challenge` or a part of it.
    package func inTurn<Value: Sendable>(
        _ name: String, of challenge: String, _ body: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        let turn = try await takeTurn(name, of: challenge)
        defer { turn.end() }
        return try await turn.during(body)
    }

    /// Waits for the turn of `name`, and takes it.
    package func takeTurn(_ name: String, of challenge: String) async throws(LoginFailure) -> LoginTurn {
        let taken = await turns.take(name) { [report] in
            report(
                ConversationStep(
                    challenge: challenge,
                    text: "turn: another login with the same state directory is under way; waiting for its end"))
        }
        guard let taken else {
            throw Task.isCancelled ? .cancelledInQueue(challenge) : .blockedByOtherProcess(challenge)
        }
        return taken
    }
}

extension LoginTurn {
    /// Runs `body`. Ends the turn if the task is cancelled meanwhile: a body that hangs must not block all others.
    package func during<Value: Sendable>(
        _ body: () async throws(LoginFailure) -> Value
    ) async throws(LoginFailure) -> Value {
        let result: Result<Value, LoginFailure> = await withTaskCancellationHandler {
            do throws(LoginFailure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        } onCancel: {
            end()
        }
        return try result.get()
    }
}
