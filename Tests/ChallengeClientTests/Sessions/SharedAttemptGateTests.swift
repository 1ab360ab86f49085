// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import EventLoop
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("The sessions that workers share")
struct SharedAttemptGateTests {
    private let key = SessionKey(
        origin: Origin(scheme: .http, host: "127.0.0.1"), challenge: "corp", credential: "corp")

    @Test("the gate's version moves with every change of the held sessions, and not with queries")
    func versions() {
        let gate = SharedAttemptGate(now: { 0 })
        let ticket = ExchangeTicket(worker: 0, exchange: 1)
        let before = gate.version
        #expect(gate.change { $0.requestSession(.bank, rejected: nil, waiter: ticket, now: 0) } == .logIn)
        #expect(gate.held(.bank) == nil)
        #expect(gate.version == before)
        let outcomes = gate.finish(.bank, with: .success(Session(fields: [])))
        #expect(outcomes.map(\.waiter) == [ticket])
        let established = gate.version
        #expect(established != before)
        guard case .use(let held) = gate.change({ $0.requestSession(.bank, rejected: nil, waiter: ticket, now: 0) })
        else {
            Issue.record("the session is not used")
            return
        }
        #expect(gate.version == established)
        #expect(gate.held(.bank) == held)
        #expect(gate.change { $0.sessions.drop { _ in true } } == [.bank])
        #expect(gate.version != established)
        #expect(gate.held(.bank) == nil)
    }

    @Test("renewals of a session that only seems to be established are no attempts, until it is refused")
    func renewals() async {
        let gate = SharedAttemptGate(now: { 0 })
        let use = CredentialUse(
            key: LatchKey(origin: key.origin, challenge: key.challenge, credential: key.credential),
            credential: Credential(name: "corp", fields: ["password": Secret("p")]))
        await gate.recordSubmission(of: use, isSent: true, now: 0)
        #expect(gate.pause(of: use, now: 1) != nil)
        var session = Session(fields: [])
        session.submission = UnverifiedSubmission(use: use)
        _ = gate.finish(key, with: .success(session))
        #expect(gate.pause(of: use, now: 1) == nil)
        await gate.recordSubmission(of: use, isSent: true, now: 2)
        let generation = gate.held(key)?.generation ?? 0
        gate.change { $0.sessions.drop(key, generation: generation) }
        #expect(gate.pause(of: use, now: 3)?.until == 60_000, "one submission, not two")
    }

    @Test("a session of a former process is not adopted where the value that it would send is latched")
    func latchedSession() async {
        let gate = SharedAttemptGate(now: { 0 })
        let session = Session.named("corp", isUnverified: true)
        if let use = session.use { await gate.record(.rejected(Latch(reason: .rejected, closedAt: 0)), of: use) }
        #expect(!gate.adopt(key, session, establishedAt: 0))
        gate.unlatch("corp")
        #expect(gate.adopt(key, session, establishedAt: 0))
    }

    @Test("a session serves on where the login that was to replace it fails, unless its own value is latched then")
    func latchedReplacement() async {
        let gate = SharedAttemptGate(now: { 0 })
        let session = Session.named("corp", isUnverified: true)
        #expect(gate.adopt(key, session, establishedAt: 0))
        #expect(gate.change { $0.sessions.beginRenewal(key, now: 0) })
        _ = gate.finish(key, with: .failure(LoginFailure(.failed, challenge: "corp", detail: "The server is away.")))
        #expect(gate.held(key) != nil)
        if let use = session.use { await gate.record(.rejected(Latch(reason: .rejected, closedAt: 0)), of: use) }
        _ = gate.finish(key, with: .failure(LoginFailure(.rejected, challenge: "corp", detail: "It was rejected.")))
        #expect(gate.read { $0.sessions.session(of: key) } == nil)
    }

    @Test("a waiter that leaves gets no result")
    func leaving() {
        let gate = SharedAttemptGate(now: { 0 })
        let (stays, leaves) = (ExchangeTicket(worker: 0, exchange: 1), ExchangeTicket(worker: 1, exchange: 1))
        _ = gate.change { $0.requestSession(.bank, rejected: nil, waiter: leaves, now: 0) }
        #expect(gate.change { $0.requestSession(.bank, rejected: nil, waiter: stays, now: 0) } == .wait)
        gate.change { $0.sessions.removeWaiter(leaves, of: .bank) }
        #expect(gate.finish(.bank, with: .success(Session(fields: []))).map(\.waiter) == [stays])
    }

    @Test("of many threads with the same challenge exactly one leads, and each gets one result")
    func oneLeader() async {
        let threads = 8
        for round in 0..<50 {
            let gate = SharedAttemptGate(limits: SessionLimits(waiters: 10_000), now: { 0 })
            let leads = Count()
            let told = Count()
            let used = Count()
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<threads {
                    group.addTask {
                        for exchange in 0..<20 {
                            let ticket = ExchangeTicket(worker: worker, exchange: UInt64(exchange))
                            switch gate.change({ $0.requestSession(.bank, rejected: nil, waiter: ticket, now: 0) }) {
                            case .logIn:
                                leads.add(1)
                                let session = Session(fields: [], expiresAt: nil)
                                let outcomes = gate.finish(.bank, with: .success(session))
                                told.add(outcomes.count)
                            case .use: used.add(1)
                            case .wait: break
                            case .refuse, .overloaded, .verify: Issue.record("round \(round)")
                            }
                        }
                    }
                }
            }
            #expect(leads.value == 1)
            #expect(told.value + used.value == threads * 20)
        }
    }

    @Test("a generation that many threads reject leads to one login")
    func oneRenewal() async {
        let gate = SharedAttemptGate(limits: SessionLimits(waiters: 10_000), now: { 0 })
        _ = gate.change {
            $0.requestSession(.bank, rejected: nil, waiter: ExchangeTicket(worker: 0, exchange: 0), now: 0)
        }
        _ = gate.finish(.bank, with: .success(Session(fields: [])))
        let old = gate.held(.bank)?.generation
        let leads = Count()
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for exchange in 0..<50 {
                        let ticket = ExchangeTicket(worker: worker, exchange: UInt64(exchange))
                        let decision = gate.change { $0.requestSession(.bank, rejected: old, waiter: ticket, now: 0) }
                        if decision == .logIn {
                            leads.add(1)
                            _ = gate.finish(.bank, with: .success(Session(fields: [])))
                        }
                        if gate.change({ $0.sessions.beginRenewal(.other, now: 0) }) { begun.add(1) }
                    }
                }
            }
        }
        #expect(leads.value == 1)
        #expect(begun.value == 0)
    }
}

/// Counter that many threads increment.
private final class Count: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add(_ number: Int) { count.wrappingAdd(number, ordering: .relaxed) }
}

extension SessionKey {
    static let bank = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "pin")
    static let other = SessionKey(
        origin: Origin(scheme: .https, host: "other.example"), challenge: "other", credential: "pin")
}

@Suite("Writes of an attempt gate")
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

    /// Has a login on the loop reject the value of `name`, and notes when the login goes on.
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

    @Test("changes during a write go together in the next one, and each is reported with its own result")
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

    @Test("the record of another process is merged at the end of a write")
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
        // The first write only reads the steps that other processes have used.
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

    @Test("if two logins request one step, one gets it, however the writes end")
    func oneStep() {
        useStep(30_000)
        useStep(30_000)
        for _ in 0..<4 {
            store.end()
            settle()
        }
        #expect(notes.all.sorted() == ["step 30000", "used until 30000"])
    }

    @Test("a failed write ends the wait, and the next successful one includes its latch")
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
        #expect(!gate.unwritten.isEmpty && store.disk.latches.entries.isEmpty)
        gate.retryWrites()
        store.end()
        #expect(gate.unwritten.isEmpty && store.disk.latches.entries.count == 1)
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
        #expect(store.disk.latches.entries.map(\.latch.closedAt) == [1_001] && gate.unwritten.isEmpty)
    }

    @Test("a latch that an operator has opened while its write failed is not closed on disk by the next write")
    func openedUnwritten() {
        reject("a")
        store.end(isWritten: false)
        gate.unlatch("a")
        store.end()
        settle()
        #expect(!isLatched("a") && store.disk.latches.entries.isEmpty && gate.unwritten.isEmpty)
    }
}

@Suite("Refusals by resources, for requests that do not want the lock")
struct MayRefuseTests {
    @Test("a gate without refusals says so again, once the last one is forgotten")
    func forgotten() {
        let gate = SharedAttemptGate(now: { 0 })
        let key = SessionKey(
            origin: Origin(scheme: .https, host: "bank.example"), challenge: "a", credential: "a")
        #expect(!gate.mayRefuse)
        gate.recordRefusal(RefusedUse(key: ResourceKey(resource: "GET /admin", session: key), generation: 1))
        #expect(gate.mayRefuse)
        // As a reload does.
        gate.change { $0.refusals = ResourceRefusals() }
        #expect(!gate.mayRefuse)
    }
}
