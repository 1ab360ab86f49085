// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Names one scheduled moment. A token that is spent or cancelled names nothing, also after its slot is used again.
public struct TimerToken: Sendable, Hashable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32
}

/// Timers in a binary heap: the earliest on top, equal deadlines in the order in which they were scheduled.
///
/// `schedule`, `cancel` and `popDue` cost O(log n) and allocate nothing once the arrays have grown.
struct TimerHeap: ~Copyable {
    private struct Node {
        var deadline: LoopInstant
        var sequence: UInt64
        var slot: UInt32

        func precedes(_ other: Node) -> Bool {
            deadline == other.deadline ? sequence < other.sequence : deadline < other.deadline
        }
    }

    private struct Slot {
        var generation: UInt32 = 0
        var position = 0
        var tag: UInt64 = 0
        var handler: (any TimerHandler)?
    }

    private var heap: [Node] = []
    private var slots: [Slot] = []
    private var freeSlots: [UInt32] = []
    private var sequence: UInt64 = 0

    /// How many are scheduled.
    var count: Int { heap.count }

    /// When the first is due.
    var earliest: LoopInstant { heap.first?.deadline ?? .never }

    mutating func schedule(at deadline: LoopInstant, _ handler: any TimerHandler, tag: UInt64) -> TimerToken {
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else {
            slot = UInt32(slots.count)
            slots.append(Slot())
        }
        slots[Int(slot)].tag = tag
        slots[Int(slot)].handler = handler
        sequence &+= 1
        heap.append(Node(deadline: deadline, sequence: sequence, slot: slot))
        siftUp(heap.count - 1)
        return TimerToken(slot: slot, generation: slots[Int(slot)].generation)
    }

    /// The handler, if the token named a scheduled moment; it does no longer. The handler's `deinit` may call the loop,
    /// hence must not run in here.
    mutating func cancel(_ token: TimerToken) -> (any TimerHandler)? {
        let index = Int(token.slot)
        guard index < slots.count, slots[index].generation == token.generation, let handler = slots[index].handler
        else { return nil }
        removeNode(at: slots[index].position)
        release(token.slot)
        return handler
    }

    /// Takes out the first, if it is due at `now`.
    mutating func popDue(_ now: LoopInstant) -> (handler: any TimerHandler, tag: UInt64)? {
        guard let first = heap.first, first.deadline <= now else { return nil }
        let slot = slots[Int(first.slot)]
        guard let handler = slot.handler else { return nil }
        removeNode(at: 0)
        release(first.slot)
        return (handler, slot.tag)
    }

    private mutating func release(_ slot: UInt32) {
        slots[Int(slot)].generation &+= 1
        slots[Int(slot)].handler = nil
        freeSlots.append(slot)
    }

    private mutating func removeNode(at position: Int) {
        let last = heap.removeLast()
        guard position < heap.count else { return }
        place(last, at: position)
        siftDown(position)
        siftUp(position)
    }

    private mutating func place(_ node: Node, at position: Int) {
        heap[position] = node
        slots[Int(node.slot)].position = position
    }

    private mutating func siftUp(_ start: Int) {
        var position = start
        let node = heap[position]
        while position > 0 {
            let parent = (position - 1) / 2
            guard node.precedes(heap[parent]) else { break }
            place(heap[parent], at: position)
            position = parent
        }
        place(node, at: position)
    }

    private mutating func siftDown(_ start: Int) {
        var position = start
        let node = heap[position]
        while true {
            var child = 2 * position + 1
            guard child < heap.count else { break }
            if child + 1 < heap.count, heap[child + 1].precedes(heap[child]) { child += 1 }
            guard heap[child].precedes(node) else { break }
            place(heap[child], at: position)
            position = child
        }
        place(node, at: position)
    }
}
