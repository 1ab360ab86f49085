// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Identifier of a scheduled timer; a spent or cancelled token identifies nothing, even after its slot is reused.
public struct TimerToken: Sendable, Hashable {
    fileprivate let slot: UInt32
    fileprivate let generation: UInt32
}

/// Binary heap of timers: earliest first, equal deadlines in the order of scheduling.
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

    /// Number of scheduled timers.
    var count: Int { heap.count }

    /// Deadline of the first timer.
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

    /// Cancels a timer, and returns its handler if the token was valid.
    ///
    /// The handler's `deinit` may call the loop, so it must not run in here.
    mutating func cancel(_ token: TimerToken) -> (any TimerHandler)? {
        let index = Int(token.slot)
        guard index < slots.count, slots[index].generation == token.generation, let handler = slots[index].handler
        else { return nil }
        removeNode(at: slots[index].position)
        release(token.slot)
        return handler
    }

    /// Removes and returns the first timer if it is due at `now`.
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

/// Timer for a deadline that moves with every request and is rarely reached.
///
/// Postponing the deadline costs one store: the scheduled timer fires early once, finds the newer deadline and is
/// scheduled again. So a busy keep-alive connection changes the timer heap about once per period.
public final class LazyTimer: TimerHandler {
    private unowned let loop: EventLoop
    /// Current deadline; `never` while the timer is not armed.
    public private(set) var deadline = LoopInstant.never
    private var scheduledAt = LoopInstant.never
    private var token: TimerToken?
    /// Called on the loop's thread when the deadline is reached. Set before the first `arm`.
    public var onExpiry: (() -> Void)?

    /// Creates a timer of `loop` without a deadline.
    public init(loop: EventLoop) {
        self.loop = loop
    }

    /// Sets or moves the deadline.
    public func arm(at instant: LoopInstant) {
        deadline = instant
        guard instant < scheduledAt else { return }
        if let token { loop.cancel(token) }
        scheduledAt = instant
        token = loop.schedule(at: instant, self)
    }

    /// Removes the deadline. Costs one store.
    public func disarm() {
        deadline = .never
    }

    /// Cancels the timer and removes it from the loop.
    public func cancel() {
        disarm()
        if let token { loop.cancel(token) }
        token = nil
        scheduledAt = .never
    }

    /// Calls `onExpiry`, or reschedules if the deadline has moved.
    public func timerFired(tag: UInt64) {
        token = nil
        scheduledAt = .never
        guard deadline != .never else { return }
        if deadline <= loop.now {
            deadline = .never
            onExpiry?()
        } else {
            arm(at: deadline)
        }
    }
}
