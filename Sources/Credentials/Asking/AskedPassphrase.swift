// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Secrets
internal import Synchronization

/// The passphrase of a keyring that a person types when the daemon first needs it; kept in memory only. Not asked for again
/// while it fits, nor for a while after a prompt that nobody answered.
package final class AskedPassphrase: Sendable {
    private enum State {
        case unknown
        case typed(Secret)
        case refused(KeyringError, until: ContinuousClock.Instant)
    }

    private let path: String
    private let asker: any SecretAsker
    private let pause: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State.unknown)

    /// The passphrase of the keyring at `path`, from `asker`.
    package init(
        of path: String, asker: any SecretAsker, pause: Duration = .seconds(60),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.path = path
        self.asker = asker
        self.pause = pause
        self.now = now
    }

    /// What was typed; blocks while it is being asked for.
    package func read() throws(KeyringError) -> Secret {
        try state.withLock { state throws(KeyringError) in
            switch state {
            case .typed(let passphrase): return passphrase
            case .refused(let error, let until) where until > now(): throw error
            case .unknown, .refused: break
            }
            do throws(AskFailure) {
                let passphrase = try asker.ask("the passphrase of \(path)", id: "countersign:\(path)")
                state = .typed(passphrase)
                return passphrase
            } catch {
                let failure = KeyringError(
                    .noPassphrase, "the passphrase of the keyring \(path) was asked for, but \(error.reason)")
                state = .refused(failure, until: now() + pause)
                throw failure
            }
        }
    }

    /// Has it asked for again: it did not fit.
    func forget() {
        state.withLock { $0 = .unknown }
    }

    /// Has it asked for again if nobody answered the last prompt.
    package func forgetRefusal() {
        // Where the lock is taken, it is being asked for.
        _ = state.withLockIfAvailable { state in
            if case .refused = state { state = .unknown }
        }
    }
}
