// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Synchronization
import Testing

@Suite("The sessions that workers share")
struct SessionDirectoryTests {
    @Test("the version moves with every change of what is held, and not with questions")
    func versions() {
        let directory = SessionDirectory()
        let ticket = ExchangeTicket(worker: 0, exchange: 1)
        let before = directory.version
        #expect(directory.request(.bank, rejected: nil, waiter: ticket, now: 0) == .lead)
        #expect(directory.held(.bank) == nil)
        #expect(directory.version == before)
        let outcomes = directory.finish(.bank, with: .success(Session(fields: [])), now: 0)
        #expect(outcomes.map(\.waiter) == [ticket])
        let won = directory.version
        #expect(won != before)
        guard case .use(let held) = directory.request(.bank, rejected: nil, waiter: ticket, now: 0) else {
            Issue.record("the session is not used")
            return
        }
        #expect(directory.version == won)
        #expect(directory.held(.bank) == held)
        #expect(directory.drop { _ in true } == [.bank])
        #expect(directory.version != won)
        #expect(directory.held(.bank) == nil)
    }

    @Test("a waiter that leaves is told nothing")
    func leaving() {
        let directory = SessionDirectory()
        let (stays, leaves) = (ExchangeTicket(worker: 0, exchange: 1), ExchangeTicket(worker: 1, exchange: 1))
        _ = directory.request(.bank, rejected: nil, waiter: leaves, now: 0)
        #expect(directory.request(.bank, rejected: nil, waiter: stays, now: 0) == .wait)
        directory.leave(.bank, waiter: leaves)
        #expect(directory.finish(.bank, with: .success(Session(fields: [])), now: 0).map(\.waiter) == [stays])
    }

    @Test("of many threads that meet the same challenge, exactly one leads, and each is told once")
    func oneLeader() async {
        let threads = 8
        for round in 0..<50 {
            let directory = SessionDirectory(limits: SessionLimits(waiters: 10_000))
            let leads = Count()
            let told = Count()
            let used = Count()
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<threads {
                    group.addTask {
                        for exchange in 0..<20 {
                            let ticket = ExchangeTicket(worker: worker, exchange: UInt64(exchange))
                            switch directory.request(.bank, rejected: nil, waiter: ticket, now: 0) {
                            case .lead:
                                leads.add(1)
                                let session = Session(fields: [], expiresAt: nil)
                                let outcomes = directory.finish(.bank, with: .success(session), now: 0)
                                told.add(outcomes.count)
                            case .use: used.add(1)
                            case .wait: break
                            case .overloaded, .prove, .refuse: Issue.record("round \(round)")
                            }
                        }
                    }
                }
            }
            #expect(leads.value == 1)
            #expect(told.value + used.value == threads * 20)
        }
    }

    @Test("a generation that many threads reject is won anew once")
    func oneRenewal() async {
        let directory = SessionDirectory(limits: SessionLimits(waiters: 10_000))
        _ = directory.request(.bank, rejected: nil, waiter: ExchangeTicket(worker: 0, exchange: 0), now: 0)
        _ = directory.finish(.bank, with: .success(Session(fields: [])), now: 0)
        let old = directory.held(.bank)?.generation
        let leads = Count()
        let begun = Count()
        await withTaskGroup(of: Void.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    for exchange in 0..<50 {
                        let ticket = ExchangeTicket(worker: worker, exchange: UInt64(exchange))
                        let decision = directory.request(.bank, rejected: old, waiter: ticket, now: 0)
                        if decision == .lead {
                            leads.add(1)
                            _ = directory.finish(.bank, with: .success(Session(fields: [])), now: 0)
                        }
                        if directory.beginRenewal(.other, now: 0) { begun.add(1) }
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
