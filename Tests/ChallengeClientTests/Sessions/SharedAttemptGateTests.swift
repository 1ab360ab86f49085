// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Synchronization
import Testing

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

    @Test("a waiter that leaves is told nothing")
    func leaving() {
        let gate = SharedAttemptGate(now: { 0 })
        let (stays, leaves) = (ExchangeTicket(worker: 0, exchange: 1), ExchangeTicket(worker: 1, exchange: 1))
        _ = gate.change { $0.requestSession(.bank, rejected: nil, waiter: leaves, now: 0) }
        #expect(gate.change { $0.requestSession(.bank, rejected: nil, waiter: stays, now: 0) } == .wait)
        gate.change { $0.sessions.removeWaiter(leaves, of: .bank) }
        #expect(gate.finish(.bank, with: .success(Session(fields: []))).map(\.waiter) == [stays])
    }

    @Test("of many threads that meet the same challenge, exactly one leads, and each is told once")
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

/// Counts, from many threads.
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
