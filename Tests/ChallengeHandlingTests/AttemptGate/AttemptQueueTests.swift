// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("Attempt queue")
struct AttemptQueueTests {
    private let told = Notes()

    private func use(_ end: Int64) -> AttemptChange { .use(seed: "ann", end: end, now: 0) }

    /// Adds a change whose maker is told by its name.
    @discardableResult
    private func add(_ change: AttemptChange, _ name: String, to queue: inout AttemptQueue) -> AttemptQueue.Ticket {
        let ticket = queue.enqueue(change)
        let isWaiting = queue.wait(for: ticket) { [told] in told.add(name) }
        #expect(isWaiting)
        return ticket
    }

    private func end(_ queue: inout AttemptQueue) {
        for waiter in queue.end() { waiter() }
    }

    @Test("a queued change notifies its waiter only after the end of its write")
    func order() {
        var queue = AttemptQueue()
        let ticket = add(use(1), "first", to: &queue)
        #expect(!queue.hasEnded(ticket))
        #expect(queue.begin() == [use(1)])
        #expect(told.all.isEmpty && !queue.hasEnded(ticket))
        end(&queue)
        #expect(told.all == ["first"] && queue.hasEnded(ticket))
        let isWaiting = queue.wait(for: ticket) {}
        #expect(!isWaiting)
        #expect(queue.begin() == nil)
    }

    @Test("changes queued during a write share the next write, and each waiter is notified at the end of its own")
    func together() {
        var queue = AttemptQueue()
        add(use(1), "first", to: &queue)
        #expect(queue.begin() == [use(1)])
        add(use(2), "second", to: &queue)
        add(use(3), "third", to: &queue)
        #expect(queue.begin() == nil, "two writes at once")
        #expect(queue.queued == [use(2), use(3)])
        end(&queue)
        #expect(told.all == ["first"])
        #expect(queue.begin() == [use(2), use(3)])
        end(&queue)
        #expect(told.all == ["first", "second", "third"])
    }

    @Test("a queued read starts another read, also after a running write")
    func read() {
        var queue = AttemptQueue()
        add(use(1), "first", to: &queue)
        _ = queue.begin()
        let read = queue.enqueueRead()
        end(&queue)
        #expect(!queue.hasEnded(read))
        #expect(queue.begin() == [])
        end(&queue)
        #expect(queue.hasEnded(read) && queue.begin() == nil)
    }

    @Test("changes beyond the limit wait for the next write, and an unlatching is never dropped")
    func limit() {
        var queue = AttemptQueue()
        for end in 0..<Int64(AttemptQueue.limit) { _ = queue.enqueue(use(end)) }
        add(use(-1), "beyond", to: &queue)
        for end in 1...3 as ClosedRange<Int64> {
            add(.unlatch(challenge: "bank", until: end), "unlatched", to: &queue)
        }
        let changes = queue.begin()
        #expect(changes?.count == AttemptQueue.limit + 1 && changes?.last == .unlatch(challenge: "bank", until: 3))
        end(&queue)
        #expect(told.all == ["beyond", "unlatched", "unlatched", "unlatched"])
    }

    @Test("changes that could not be written go first in the next write, which a retry begins if nothing else does")
    func retry() {
        var queue = AttemptQueue()
        queue.retry()
        #expect(queue.begin() == nil)
        add(use(1), "first", to: &queue)
        _ = queue.begin()
        add(use(2), "second", to: &queue)
        for waiter in queue.end(isWritten: false) { waiter() }
        #expect(told.all == ["first"], "the caller waits for a disk that has failed")
        #expect(queue.hasUnwritten)
        #expect(queue.begin() == [use(1), use(2)])
        for waiter in queue.end(isWritten: false) { waiter() }
        #expect(queue.begin() == nil, "the disk is asked again and again")
        queue.retry()
        #expect(queue.begin() == [use(1), use(2)])
        queue.retry()
        end(&queue)
        #expect(!queue.hasUnwritten && queue.begin() == nil)
    }

    @Test("the end of no write notifies no waiter")
    func endOfNothing() {
        var queue = AttemptQueue()
        add(use(1), "first", to: &queue)
        end(&queue)
        #expect(told.all.isEmpty && queue.begin() == [use(1)])
    }
}
