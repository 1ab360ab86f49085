// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Future actions by time. Those of one moment keep their order.
struct EventQueue {
    private struct Item {
        let time: Int64
        let number: Int
        let action: () -> Void
    }

    private var heap: [Item] = []
    private var lastNumber = 0

    mutating func insert(at time: Int64, _ action: @escaping () -> Void) {
        lastNumber += 1
        heap.append(Item(time: time, number: lastNumber, action: action))
        var child = heap.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isBefore(child, parent) else { break }
            heap.swapAt(child, parent)
            child = parent
        }
    }

    mutating func removeFirst() -> (time: Int64, action: () -> Void)? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        if !heap.isEmpty {
            heap[0] = last
            sink()
        }
        return (first.time, first.action)
    }

    private mutating func sink() {
        var parent = 0
        while true {
            var least = 2 * parent + 1
            guard least < heap.count else { return }
            if least + 1 < heap.count, isBefore(least + 1, least) { least += 1 }
            guard isBefore(least, parent) else { return }
            heap.swapAt(least, parent)
            parent = least
        }
    }

    private func isBefore(_ left: Int, _ right: Int) -> Bool {
        heap[left].time < heap[right].time
            || (heap[left].time == heap[right].time && heap[left].number < heap[right].number)
    }
}
