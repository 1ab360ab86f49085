// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

@Suite("A dictionary with a limit")
struct BoundedDictionaryTests {
    @Test("the entry that was stored first makes room, also if it was stored again")
    func oldest() {
        var known = BoundedDictionary<String, Int>(limit: 2)
        known.store(1, for: "a")
        known.store(2, for: "b")
        known.store(3, for: "a")
        known.store(4, for: "c")
        #expect(known.entries == ["b": 2, "c": 4])
    }

    @Test("an entry that is removed and stored again is the latest, and takes no place twice")
    func latest() {
        var known = BoundedDictionary<String, Int>(limit: 2)
        known.store(1, for: "a")
        known.store(2, for: "b")
        known.remove("a")
        known.remove("a")
        #expect(known["a"] == nil && known["b"] == 2)
        known.store(3, for: "a")
        known.store(4, for: "c")
        #expect(known.entries == ["a": 3, "c": 4])
    }
}

@Suite("Priority queue")
struct PriorityQueueTests {
    @Test(
        "values come in the order of their priorities, whatever the order in which they were added", arguments: 0..<50)
    func order(count: Int) {
        var queue = PriorityQueue<Int, Int>()
        var priorities = (0..<count).map { _ in Int.random(in: 0..<20) }
        for (value, priority) in priorities.enumerated() { queue.insert(value, priority) }
        priorities.sort()
        var found: [Int] = []
        while let first = queue.first {
            // In between, another one that is first.
            queue.insert(-1, first.priority - 1)
            #expect(queue.first?.value == -1)
            queue.removeFirst()
            found.append(first.priority)
            queue.removeFirst()
        }
        #expect(found == priorities && queue.count == 0)
        queue.removeFirst()
    }
}
