// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A dictionary for keys that others choose: the entry that was stored first makes room when there are too many.
package struct BoundedDictionary<Key: Hashable, Value> {
    private let limit: Int
    private var order: [Key] = []
    /// The entries, at most `limit`.
    package private(set) var entries: [Key: Value] = [:]

    /// Creates an empty dictionary for `limit` entries.
    package init(limit: Int) { self.limit = limit }

    /// Returns the value of `key`.
    package subscript(key: Key) -> Value? { entries[key] }

    /// Stores a value. The entry of a known key stays as old as it was.
    package mutating func store(_ value: Value, for key: Key) {
        if entries.updateValue(value, forKey: key) == nil { order.append(key) }
        if order.count > limit { entries[order.removeFirst()] = nil }
    }

    /// Removes the entry of `key`.
    package mutating func remove(_ key: Key) {
        if entries.removeValue(forKey: key) != nil { order.removeAll { $0 == key } }
    }
}

extension BoundedDictionary: Sendable where Key: Sendable, Value: Sendable {}
