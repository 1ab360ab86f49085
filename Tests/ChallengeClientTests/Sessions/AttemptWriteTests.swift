// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import Secrets
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("What an attempt gate has written")
struct AttemptWriteTests {
    private let store = HeldAttempts()
    private let clock = ManualLoopClock()
    private let notes = Notes()
    private let loop: EventLoop
    private let gate: SharedAttemptGate

    init() throws {
        loop = try EventLoop(clock: clock)
        loop.turnOnce()
        gate = SharedAttemptGate(store: store, now: { 1_000 })
    }

    private func use(_ name: String) -> CredentialUse {
        CredentialUse(
            key: LatchKey(origin: Origin(scheme: .https, host: "bank.example"), challenge: name, credential: "pin"),
            credential: Credential(name: "pin", fields: ["pin": Secret("1234")]))
    }

    private let latch = Latch(reason: .rejected, closedAt: 0)

    private func settle() { for _ in 0..<8 { loop.turnOnce() } }

    /// A login on the loop rejects the value of `name`, and notes when it goes on.
    private func reject(_ name: String) {
        Task(executorPreference: loop) { [gate, notes, use = use(name), latch] in
            await gate.record(.rejected(latch), of: use)
            notes.add(name)
        }
        settle()
    }

    private func useStep(_ end: Int64) {
        Task(executorPreference: loop) { [gate, notes] in
            let used = await gate.use(code: "ann", stepEnding: end, isUsed: true, now: 0)
            notes.add(used.map { "used until \($0)" } ?? "step \(end)")
        }
        settle()
    }

    private func isLatched(_ name: String) -> Bool { gate.refusal(of: use(name), now: 1_000) != nil }

    @Test("changes that come during a write go together in the next one, and each is told with its own")
    func together() {
        for name in ["a", "b", "c"] { reject(name) }
        #expect(store.begun.map(\.count) == [1])
        for name in ["a", "b", "c"] { #expect(isLatched(name)) }
        store.end()
        settle()
        #expect(notes.all == ["a"])
        #expect(store.begun.map(\.count) == [1, 2])
        store.end()
        settle()
        #expect(notes.all == ["a", "b", "c"])
        #expect(store.disk.latches.entries.count == 3)
    }

    @Test("an operator who opens a latch during its write has opened it, in memory and on disk")
    func openedMeanwhile() {
        reject("a")
        gate.unlatch("a") { [notes] in notes.add("open") }
        #expect(!isLatched("a"))
        store.end()
        settle()
        #expect(!isLatched("a"), "the end of the write has closed it again")
        #expect(notes.all == ["a"])
        store.end()
        #expect(notes.all == ["a", "open"])
        #expect(!isLatched("a") && store.disk.latches.entries.isEmpty)
    }

    @Test("what another process has kept is taken over at the end of a write")
    func others() {
        let other = use("other")
        store.change(.close(other.key, digest: store.digest(of: other.credential), latch))
        #expect(!isLatched("other"))
        reject("a")
        store.end()
        #expect(isLatched("other") && isLatched("a"))
        #expect(store.disk.latches.entries.count == 2)
    }

    @Test("the step of a one-time password is on disk before its code can be sent")
    func step() {
        useStep(30_000)
        // The look at what other processes have used.
        #expect(store.begun == [[]] && notes.all.isEmpty)
        store.end()
        settle()
        #expect(store.begun.map(\.count) == [0, 1] && notes.all.isEmpty)
        store.end()
        settle()
        #expect(notes.all == ["step 30000"])
        #expect(store.disk.codes.ends == ["ann": 30_000])
    }

    @Test("a step that another process has used is not used here")
    func usedElsewhere() {
        store.change(.use(seed: "ann", end: 30_000, now: 0))
        useStep(30_000)
        store.end()
        settle()
        #expect(notes.all == ["used until 30000"])
        #expect(store.begun == [[]])
    }

    @Test("of two logins that want one step, one gets it, however the writes end")
    func oneStep() {
        useStep(30_000)
        useStep(30_000)
        for _ in 0..<4 {
            store.end()
            settle()
        }
        #expect(notes.all.sorted() == ["step 30000", "used until 30000"])
    }

    @Test("a failed write is the end of the wait, and the next one that succeeds takes its latch along")
    func failed() {
        reject("a")
        store.end(isWritten: false)
        settle()
        #expect(notes.all == ["a"] && isLatched("a"))
        reject("b")
        store.end()
        settle()
        #expect(store.disk.latches.entries.count == 2)
    }

    @Test("a latch whose write has failed is written again without another change")
    func retried() {
        reject("a")
        store.end(isWritten: false)
        settle()
        #expect(gate.hasUnwritten && store.disk.latches.entries.isEmpty)
        gate.retryWrites()
        store.end()
        #expect(!gate.hasUnwritten && store.disk.latches.entries.count == 1)
        gate.retryWrites()
        #expect(store.begun.map(\.count) == [1, 1])
    }

    @Test("an unlatching that is written late leaves a latch closed that another process has closed since")
    func openedLate() {
        gate.unlatch("a")
        store.end(isWritten: false)
        for end in [999, 1_001] as [Int64] {
            store.change(.close(use("a").key, digest: [UInt8(end % 256)], Latch(reason: .rejected, closedAt: end)))
        }
        gate.retryWrites()
        store.end()
        settle()
        #expect(store.disk.latches.entries.map(\.latch.closedAt) == [1_001] && !gate.hasUnwritten)
    }

    @Test("a latch that an operator has opened while its write failed is not closed on disk by the next write")
    func openedUnwritten() {
        reject("a")
        store.end(isWritten: false)
        gate.unlatch("a")
        store.end()
        settle()
        #expect(!isLatched("a") && store.disk.latches.entries.isEmpty && !gate.hasUnwritten)
    }
}
