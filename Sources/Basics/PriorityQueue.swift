// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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
