// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import TestSupport
import Testing

@Suite("Latch table")
struct LatchTableTests {
    private func key(_ challenge: String = "bank-pin", host: String = "bank.example.com") -> LatchKey {
        LatchKey(origin: Origin(scheme: .https, host: host), challenge: challenge, credential: "bank-pin")
    }

    private func latch(_ closedAt: Int64, opensAt: Int64? = nil) -> Latch {
        Latch(reason: .rejected, closedAt: closedAt, opensAt: opensAt)
    }

    @Test("a latch holds for its origin, challenge, credential and value only")
    func holds() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(10))
        #expect(table.closedLatch(key(), digest: [1], now: 20) == latch(10))
        #expect(table.closedLatch(key(), digest: [2], now: 20) == nil)
        #expect(table.closedLatch(key("other"), digest: [1], now: 20) == nil)
        #expect(table.closedLatch(key(host: "other"), digest: [1], now: 20) == nil)
        var elsewhere = key()
        elsewhere.credential = "other"
        #expect(table.closedLatch(elsewhere, digest: [1], now: 20) == nil)
    }

    @Test("a latch opens at its time, not before")
    func opensByTime() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(10, opensAt: 100))
        #expect(table.closedLatch(key(), digest: [1], now: 99) != nil)
        #expect(table.closedLatch(key(), digest: [1], now: 100) == nil)
        table.removeOpened(now: 99)
        #expect(table.entries.count == 1)
        table.removeOpened(now: 100)
        #expect(table.entries.isEmpty)
    }

    @Test("a latch that closes again has the later reason and time")
    func closesAgain() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(10, opensAt: 20))
        let locked = Latch(reason: .locked, closedAt: 30)
        table.close(key(), digest: [1], locked)
        #expect(table.entries.map(\.latch) == [locked])
    }

    @Test("a closing that is written late does not replace a later one, which another process may have made")
    func closesLate() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(10, opensAt: 100))
        table.close(key(), digest: [1], latch(5, opensAt: 20))
        #expect(table.closedLatch(key(), digest: [1], now: 50) == latch(10, opensAt: 100))
    }

    @Test("unlatching a challenge opens the latches of all its values at every origin")
    func unlatch() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(1))
        table.close(key(), digest: [2], latch(2))
        table.close(key(host: "other"), digest: [1], latch(3))
        table.close(key("other"), digest: [1], latch(4))
        let opened = table.unlatch(challenge: "bank-pin", until: 3)
        #expect(opened == 3)
        #expect(table.entries.map(\.key.challenge) == ["other"])
    }

    @Test("unlatching leaves the latches that closed after it, which another process may have closed meanwhile")
    func laterThanUnlatching() {
        var table = LatchTable()
        table.close(key(), digest: [1], latch(1))
        table.close(key(), digest: [2], latch(3))
        let opened = table.unlatch(challenge: nil, until: 2)
        #expect(opened == 1)
        #expect(table.entries.map(\.digest) == [[2]])
    }

    @Test("a latch table drops the earliest value of a full key, never another key's")
    func boundPerKey() {
        var table = LatchTable()
        table.close(key("other"), digest: [0], latch(0))
        for index in 0...LatchTable.limitPerKey { table.close(key(), digest: [UInt8(index)], latch(Int64(index) + 1)) }
        #expect(table.entries.count == LatchTable.limitPerKey + 1)
        #expect(table.closedLatch(key(), digest: [0], now: 100) == nil)
        #expect(table.closedLatch(key(), digest: [1], now: 100) != nil)
        #expect(table.closedLatch(key("other"), digest: [0], now: 100) != nil)
    }

    @Test("a latch table is limited in its total size")
    func bound() {
        var table = LatchTable()
        for index in 0..<LatchTable.limit + 10 { table.close(key("c\(index)"), digest: [1], latch(Int64(index))) }
        #expect(table.entries.count == LatchTable.limit)
        #expect(table.entries.first?.key.challenge == "c10")
    }

    @Test("a latch table is restored unchanged from its bytes")
    func roundTrip() {
        var table = LatchTable()
        table.close(key(), digest: [0x00, 0xAB, 0xFF], latch(10))
        table.close(key("päss \"word\""), digest: [1], Latch(reason: .locked, closedAt: 20, opensAt: .max))
        #expect(LatchTable(parsing: table.serialized()) == table)
        #expect(LatchTable(parsing: LatchTable().serialized()) == LatchTable())
    }

    @Test(
        "a latch table is not restored from invalid or partly valid bytes",
        arguments: [
            "", "{}", "[]", #"{"version":2,"latches":[]}"#, #"{"version":1}"#, #"{"version":1,"latches":[{}]}"#,
            #"{"version":1,"latches":[{"scheme":"https","host":"a","port":443,"challenge":"c","credential":"d","#
                + #""digest":"0g","reason":"rejected","closed-at":1}]}"#,
            #"{"version":1,"latches":[{"scheme":"https","host":"a","port":65536,"challenge":"c","credential":"d","#
                + #""digest":"00","reason":"rejected","closed-at":1}]}"#,
        ])
    func refuses(text: String) {
        #expect(LatchTable(parsing: Array(text.utf8)) == nil)
    }

    @Test("a latch table merges another one, with the later latch of each value")
    func merge() {
        var one = LatchTable()
        one.close(key(), digest: [1], latch(10))
        one.close(key(), digest: [2], latch(40))
        var other = LatchTable()
        other.close(key(), digest: [1], latch(30))
        other.close(key(), digest: [2], latch(20))
        other.close(key(), digest: [3], latch(5))
        one.merge(other)
        #expect(one.entries.map(\.digest) == [[3], [1], [2]])
        #expect(one.entries.map(\.latch.closedAt) == [5, 30, 40])
    }
}

@Suite("Attempt queue")
struct AttemptQueueTests {
    private let told = Notes()

    private func use(_ end: Int64) -> AttemptChange { .use(seed: "ann", end: end, now: 0) }

    /// Adds a change, and notes `name` when its write ends.
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
        #expect(queue.unwritten == [use(1)])
        #expect(queue.begin() == [use(1), use(2)])
        for waiter in queue.end(isWritten: false) { waiter() }
        #expect(queue.begin() == nil, "the disk is asked again and again")
        #expect(queue.unwritten == [use(1), use(2)])
        queue.retry()
        #expect(queue.begin() == [use(1), use(2)])
        queue.retry()
        end(&queue)
        #expect(queue.unwritten.isEmpty && queue.begin() == nil)
    }

    @Test("the end of no write notifies no waiter")
    func endOfNothing() {
        var queue = AttemptQueue()
        add(use(1), "first", to: &queue)
        end(&queue)
        #expect(told.all.isEmpty && queue.begin() == [use(1)])
    }
}
