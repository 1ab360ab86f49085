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

/// Values ordered by a priority, the least first: a binary heap, so that adding and removing cost the logarithm of the number.
package struct PriorityQueue<Priority: Comparable, Value> {
    private var heap: [(priority: Priority, value: Value)] = []

    /// Creates an empty queue.
    package init() {}

    /// Number of values.
    package var count: Int { heap.count }

    /// Value with the least priority.
    package var first: (priority: Priority, value: Value)? { heap.first }

    /// Adds a value.
    package mutating func insert(_ value: Value, _ priority: Priority) {
        heap.append((priority, value))
        var index = heap.count - 1
        while index > 0, heap[index].priority < heap[(index - 1) / 2].priority {
            heap.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Removes the value with the least priority, if there is one.
    package mutating func removeFirst() {
        guard !heap.isEmpty else { return }
        heap.swapAt(0, heap.count - 1)
        heap.removeLast()
        var index = 0
        while let child = leastChild(of: index), heap[child].priority < heap[index].priority {
            heap.swapAt(index, child)
            index = child
        }
    }

    private func leastChild(of index: Int) -> Int? {
        let (left, right) = (2 * index + 1, 2 * index + 2)
        guard left < heap.count else { return nil }
        return right < heap.count && heap[right].priority < heap[left].priority ? right : left
    }
}

extension PriorityQueue: Sendable where Priority: Sendable, Value: Sendable {}
