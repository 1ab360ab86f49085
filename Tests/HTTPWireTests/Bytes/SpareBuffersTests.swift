// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Suite("Spare buffers")
struct SpareBuffersTests {
    @Test("an empty queue gives its memory to the next one that is filled, and keeps none")
    func lending() {
        var spare = SpareBuffers(size: 512, most: 2)
        var first = ByteQueue(capacity: 512)
        first.append("one")
        spare.takeBack(from: &first)
        #expect(first.capacity == 512 && spare.count == 0, "it is not empty")
        first.consume(3)
        spare.takeBack(from: &first)
        #expect(first.capacity == 0 && first.isEmpty && spare.count == 1)
        var second = ByteQueue()
        spare.lend(to: &second)
        #expect(second.capacity == 512 && second.isEmpty && spare.count == 0)
        second.append("two")
        spare.lend(to: &second)
        #expect(second.copy() == Array("two".utf8))
        first.append("three")
        #expect(first.copy() == Array("three".utf8) && second.copy() == Array("two".utf8))
    }

    @Test("memory of another size, and more than is wanted, is not kept")
    func limits() {
        var spare = SpareBuffers(size: 512, most: 2)
        var large = ByteQueue(capacity: 1_024)
        spare.takeBack(from: &large)
        #expect(large.capacity == 1_024 && spare.count == 0)
        for _ in 0..<4 {
            var queue = ByteQueue(capacity: 512)
            spare.takeBack(from: &queue)
            #expect(queue.capacity == 0)
        }
        #expect(spare.count == 2)
    }
}
