// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Basics
import Testing

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
