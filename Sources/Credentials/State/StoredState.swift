// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
public import Secrets

/// State of a program in a directory, which outlives the process.
///
/// ```swift
/// let stored = try StoredState(directory: "/var/lib/my-program/logins")
/// configuration.state = stored.state
/// configuration.attempts = stored.attempts
/// ```
///
/// With it, a MobileFirst client registers once and not at each start, rotated refresh tokens are not lost, and a credential of
/// `ClientConfiguration.credentials` that a server has rejected is not sent again by the next process. (An answer that a handler makes by
/// itself is remembered by its process only.) All files are sealed (AES-256-GCM); the directory has mode 0700 and belongs to this user.
/// Several processes may use one directory.
public struct StoredState: Sendable {
    /// The store for `ClientConfiguration.state`.
    public let state: any StateStore
    /// The store for `ClientConfiguration.attempts`.
    public let attempts: any AttemptStore

    /// Opens the directory, and creates it if missing. Blocks until its files are read.
    ///
    /// `key`: at least 16 bytes, kept elsewhere. Without it, a random key is kept in the directory, which protects copies of single files
    /// only. `onFailure` is called on any thread if a rejection could not be written: it is then known to this process alone. Throws if
    /// the directory cannot be used, or a file in it cannot be read: a rejected credential must not be forgotten by accident.
    public init(
        directory: String, key: Secret? = nil, onFailure: @escaping @Sendable (StateError) -> Void = { _ in }
    ) throws(StateError) {
        let files = try SealedStateStore(directory: directory, key: key)
        state = files
        attempts = try SealedAttemptStore(in: files) { error, _ in onFailure(error) }
    }
}
