// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets
internal import Synchronization

/// Kept state that ends with the program.
public final class MemoryState: StateStore {
    private let values = Mutex<[String: Secret]>([:])

    /// Nothing kept.
    public init() {}

    /// The value kept under `name`.
    public func load(_ name: String) throws(StateError) -> Secret? { values.withLock { $0[name] } }

    /// Keeps `value` under `name`.
    public func save(_ value: Secret, as name: String) throws(StateError) { values.withLock { $0[name] = value } }

    /// Forgets `name`.
    public func remove(_ name: String) throws(StateError) { values.withLock { $0[name] = nil } }
}
