// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// Something could not be kept or read back.
public struct StateError: Error, Sendable, Equatable {
    /// What happened, where, and what to do; without secrets.
    public var reason: String

    /// An error.
    public init(reason: String) {
        self.reason = reason
    }
}

/// What has to survive a restart: client registrations, latches, rotated refresh tokens. Sealed where it is kept.
public protocol StateStore: Sendable {
    /// The value kept under `name` (letters, digits, `-`, `_`, `.`), or `nil`.
    func load(_ name: String) throws(StateError) -> Secret?
    /// Keeps `value` under `name`, durably, before it returns.
    func save(_ value: Secret, as name: String) throws(StateError)
    /// Forgets `name`; does nothing where there is none.
    func remove(_ name: String) throws(StateError)
}
