// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import TestSupport
import Testing

private func bytes(_ queue: borrowing ByteQueue) -> [UInt8] {
    queue.withSpan { span in span.copy(ByteRange(start: 0, end: span.count)) }
}

@Test("an empty ByteQueue has no memory")
func emptyQueue() {
    let queue = ByteQueue()
    #expect(queue.isEmpty == true)
    #expect(queue.capacity == 0)
    #expect(queue.withSpan { $0.count } == 0)
    #expect(unsafe queue.withUnsafeBytes { $0.count } == 0)
    let roomy = ByteQueue(capacity: 5_000)
    #expect(roomy.capacity >= 5_000)
    #expect(roomy.isEmpty == true)
}

@Test("ByteQueue returns everything that was appended, in order")
func appendKinds() {
    var queue = ByteQueue()
    queue.append(UInt8(ascii: "a"))
    queue.append("b\u{E9}")
    let text = "c" + String(queue.count)
    queue.append(text)
    let array: [UInt8] = [100, 101]
    queue.append(array.span)
    queue.append(array)
    queue.append(array.reversed())
    unsafe array.withUnsafeBytes { unsafe queue.append($0) }
    queue.append([UInt8]())
    queue.append("")
    #expect(bytes(queue) == Array("ab\u{E9}c4dedeedde".utf8))
}

@Test("ByteQueue writes numbers without leading zeros")
func numbers() {
    for value: UInt64 in [0, 1, 9, 10, 15, 16, 99, 100, 255, 256, 65_535, 1 << 32, .max - 1, .max] {
        var queue = ByteQueue()
        queue.append(decimal: value)
        queue.append(UInt8(ascii: " "))
        queue.append(hexadecimal: value)
        #expect(bytes(queue) == Array("\(value) \(String(value, radix: 16))".utf8))
    }
}

@Test("a ByteQueue that is consumed completely restarts at the beginning of its memory")
func consumeResets() {
    var queue = ByteQueue(capacity: 256)
    for _ in 0..<1_000 {
        queue.append([UInt8](repeating: 1, count: 200))
        queue.consume(100)
        queue.consume(100)
        #expect(queue.isEmpty == true)
    }
    #expect(queue.capacity == 256)
    queue.append("abc")
    queue.consume(-1)
    #expect(queue.count == 3)
    queue.consume(.max)
    #expect(queue.isEmpty == true)
}

@Test("ByteQueue compacts instead of growing if that is enough")
func compacts() {
    var queue = ByteQueue(capacity: 1_024)
    queue.append([UInt8](repeating: 1, count: 1_000))
    queue.consume(900)
    queue.append([UInt8](repeating: 2, count: 900))
    #expect(queue.capacity == 1_024)
    #expect(bytes(queue) == [UInt8](repeating: 1, count: 100) + [UInt8](repeating: 2, count: 900))
}

@Test("ByteQueue.removeAll frees memory beyond the capacity to keep")
func givesBack() {
    var queue = ByteQueue()
    queue.append([UInt8](repeating: 1, count: 10_000))
    queue.removeAll(keepingCapacity: 100_000)
    #expect(queue.isEmpty && queue.capacity >= 10_000)
    queue.removeAll(keepingCapacity: 4_096)
    #expect(queue.capacity == 0)
    queue.append("a")
    #expect(bytes(queue) == [97])
}

@Test("ByteQueue.erase overwrites all bytes, including consumed ones")
func erased() {
    var queue = ByteQueue()
    queue.erase()
    queue.append("secret and more")
    queue.consume(7)
    queue.erase()
    #expect(queue.isEmpty && queue.capacity == 0)
    queue.append("a")
    #expect(bytes(queue) == [97])
}

@Test("the free space of a ByteQueue is filled from the front and never exceeded")
func freeSpace() {
    var queue = ByteQueue()
    queue.append("ab")
    let taken = unsafe queue.withUnsafeFreeSpace(minimum: 100) { space in
        #expect(space.count >= 100)
        unsafe space.storeBytes(of: UInt8(ascii: "c"), as: UInt8.self)
        return 1
    }
    #expect(taken == 1)
    #expect(bytes(queue) == Array("abc".utf8))
    #expect(unsafe queue.withUnsafeFreeSpace(minimum: 1) { _ in -5 } == 0)
    #expect(queue.count == 3)
    let most = queue.capacity - queue.count
    #expect(unsafe queue.withUnsafeFreeSpace(minimum: 0) { _ in .max } == most)
}

@Test("ByteQueue is first in, first out under every mix of operations")
func firstInFirstOut() {
    var random = SplitMix(state: 7)
    var queue = ByteQueue()
    var model: [UInt8] = []
    var next: UInt8 = 0
    for _ in 0..<3_000 {
        switch Int.random(in: 0..<4, using: &random) {
        case 0:
            let count = Int.random(in: 0...3_000, using: &random)
            queue.consume(count)
            model.removeFirst(min(count, model.count))
        case 1:
            queue.append(next)
            model.append(next)
            next &+= 1
        default:
            let count = Int.random(in: 0...1_000, using: &random)
            let fresh = (0..<count).map { UInt8(truncatingIfNeeded: $0) &+ next }
            next &+= 13
            queue.append(fresh)
            model += fresh
        }
        #expect(queue.count == model.count)
        if model.count > 20_000 {
            #expect(bytes(queue) == model)
            queue.consume(model.count)
            model = []
        }
    }
    #expect(bytes(queue) == model)
}

@Test("a long stream through a full ByteQueue takes time proportional to the stream")
func streamIsLinear() {
    func timeOfStream(queueOf size: Int) -> Int {
        var queue = ByteQueue(capacity: size)
        queue.append([UInt8](repeating: 1, count: queue.capacity))
        let start = threadTime()
        for _ in 0..<100_000 {
            queue.consume(1)
            queue.append(2)
        }
        #expect(queue.capacity <= size * 3)
        return threadTime() - start
    }
    // Moving the whole queue for each byte would make the larger one a thousand times as slow.
    #expect(timeOfStream(queueOf: 4_000_000) < timeOfStream(queueOf: 20_000) * 50)
}

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
