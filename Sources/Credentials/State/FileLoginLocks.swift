// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Crypto
internal import Synchronization

/// Locks of logins in the file `login-locks` of the state directory, one byte for each login.
///
/// The file stays empty and does not grow. A lock is released when what its login recorded is on disk, or at the end of the process.
package final class FileLoginLocks: LoginLocks {
    private static let fileName = "login-locks"

    private let path: String
    private let thread: StateThread
    private let refresh: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let onFailure: @Sendable (StateError) -> Void
    /// True after a failure, until a lock was taken again.
    private let hasFailed = Atomic(false)

    /// Creates the locks of `state`.
    ///
    /// `refresh` reads the state again after all changes made before are on disk, and calls its argument at the end.
    /// `onFailure` is called on any thread when locking begins to fail.
    package init(
        in state: SealedStateStore, refresh: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void,
        onFailure: @escaping @Sendable (StateError) -> Void
    ) {
        path = "\(state.files.directory)/\(Self.fileName)"
        thread = state.thread
        self.refresh = refresh
        self.onFailure = onFailure
    }

    /// Takes the lock of `name`; see `LoginLocks`.
    package func lock(_ name: String) async -> LoginLockResult {
        var lock: ByteLock?
        do throws(StateError) {
            lock = try await acquire(name)
            guard lock != nil else { return .held }
            hasFailed.store(false, ordering: .relaxed)
        } catch {
            if !hasFailed.exchange(true, ordering: .relaxed) { onFailure(error) }
        }
        await withCheckedContinuation { continuation in refresh { continuation.resume() } }
        return .taken(LoginTurn { [refresh, lock] in refresh { lock?.release() } })
    }

    private func acquire(_ name: String) async throws(StateError) -> ByteLock? {
        let offset = Self.offset(of: name)
        return try await thread.run { [path] () throws(StateError) in
            do throws(FileFault) {
                return try ByteLock.acquire(path, at: offset)
            } catch {
                throw StateError(reason: error.reason)
            }
        }
    }

    /// Returns the byte of a name, the same in all processes. Two names with one byte would only wait for each other.
    static func offset(of name: String) -> Int64 {
        SHA256.hash(data: Array(name.utf8)).prefix(6).reduce(0) { $0 << 8 | Int64($1) }
    }
}
