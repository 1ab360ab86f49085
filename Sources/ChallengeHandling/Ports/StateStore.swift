// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
public import Secrets
internal import Synchronization

/// Failure to store or load state.
public struct StateError: Error, Sendable, Equatable {
    /// Reason, location and remedy, without secrets.
    public var reason: String

    /// Creates an error.
    public init(reason: String) {
        self.reason = reason
    }
}

/// Storage of state that survives restarts, such as client registrations and rotated refresh tokens.
///
/// Values are stored in sealed form. Logins call the store on an event loop, so slow work runs on another thread.
public protocol StateStore: Sendable {
    /// Returns the value stored under `name` (letters, digits, `-`, `_`, `.`), or `nil`.
    func load(_ name: String) async throws(StateError) -> Secret?
    /// Stores `value` under `name`. The value is on disk when the call returns.
    func save(_ value: Secret, as name: String) async throws(StateError)
    /// Removes the value stored under `name`, if there is one.
    func remove(_ name: String) async throws(StateError)
}

/// State that exists until the end of the process.
public final class MemoryState: StateStore {
    private let values = Mutex<[String: Secret]>([:])

    /// Creates an empty store.
    public init() {}

    /// Returns the value stored under `name`.
    public func load(_ name: String) throws(StateError) -> Secret? { values.withLock { $0[name] } }

    /// Stores `value` under `name`.
    public func save(_ value: Secret, as name: String) throws(StateError) { values.withLock { $0[name] = value } }

    /// Removes the value stored under `name`.
    public func remove(_ name: String) throws(StateError) { values.withLock { $0[name] = nil } }
}

/// Names for entries of a `StateStore`.
enum StateName {
    /// Returns `text` in characters that a name may contain, with each other byte as `_XX`.
    ///
    /// Different texts have different names.
    static func word(_ text: String) -> String {
        text.utf8.map { byte in
            byte.isAlphanumeric || byte == UInt8(ascii: "-")
                ? String(Character(Unicode.Scalar(byte))) : "_\(Hex.encode(byte))"
        }.joined()
    }
}
