// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("The session table confirms a session in doubt")
struct ConfirmationTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "")
    private var table = SessionTable<Int>(limits: SessionLimits(waiters: 3))
    private let held: HeldSession

    init() throws {
        _ = table.request(key, rejected: nil, waiter: 0, now: 0)
        _ = table.finish(key, with: .success(Session(expiresAt: 100_000)), now: 0, chance: 0)
        held = try #require(table.held(key))
    }

    @Test("once for all, serves meanwhile, and no renewal begins")
    mutating func once() {
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 1) == .confirm(held))
        #expect(table.doubt(key, generation: 1, waiter: 2, now: 1) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 1) == .use(held))
        #expect(table.beginRenewal(key, now: 1) == false)
        let told = table.confirm(key, generation: 1, .stillGood, now: 2)
        #expect(told.map(\.waiter) == [1, 2])
        #expect(told.allSatisfy { $0.outcome == .kept(held, isConfirmed: true) })
        #expect(table.held(key) == held)
        #expect(table.beginRenewal(key, now: 2) == true)
    }

    @Test("that is over is dropped, and the first to ask again leads one login")
    mutating func over() {
        _ = table.doubt(key, generation: 1, waiter: 1, now: 1)
        _ = table.doubt(key, generation: 1, waiter: 2, now: 1)
        #expect(table.confirm(key, generation: 1, .over, now: 2).map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 2) == .over)
        #expect(table.request(key, rejected: 1, waiter: 1, now: 2) == .go)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 2) == .wait)
    }

    @Test("without a usable answer stays, and is not asked for again for five seconds")
    mutating func unknown() {
        _ = table.doubt(key, generation: 1, waiter: 1, now: 1)
        let told = table.confirm(key, generation: 1, .unknown, now: 2)
        #expect(told.map(\.outcome) == [.kept(held, isConfirmed: false)])
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 5_001) == .keep)
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 5_002) == .confirm(held))
        _ = table.confirm(key, generation: 1, .unknown, now: 5_003)
        #expect(table.held(key) == held)
        _ = table.doubt(key, generation: 1, waiter: 1, now: 10_003)
        #expect(table.confirm(key, generation: 1, .unknown, now: 10_004).map(\.outcome) == [.askAgain])
        #expect(table.held(key) == nil, "three in a row")
    }

    @Test("that was dropped or replaced meanwhile is over, whatever the answer was")
    mutating func dropped() {
        _ = table.doubt(key, generation: 1, waiter: 1, now: 1)
        _ = table.drop { _ in true }
        #expect(table.confirm(key, generation: 1, .stillGood, now: 2).map(\.outcome) == [.askAgain])
        #expect(table.held(key) == nil)
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 2) == .over)
    }

    @Test("of an earlier generation says nothing of the one that is held")
    mutating func earlier() {
        _ = table.request(key, rejected: 1, waiter: 1, now: 1)
        _ = table.finish(key, with: .success(Session(expiresAt: 100_000)), now: 1, chance: 0)
        _ = table.doubt(key, generation: 2, waiter: 1, now: 1)
        #expect(table.confirm(key, generation: 1, .over, now: 2).map(\.outcome) == [.askAgain])
        #expect(table.held(key)?.generation == 2)
    }

    @Test("in no more exchanges than may wait, and none is left that went away")
    mutating func bounds() {
        _ = table.doubt(key, generation: 1, waiter: 1, now: 1)
        _ = table.doubt(key, generation: 1, waiter: 2, now: 1)
        _ = table.doubt(key, generation: 1, waiter: 3, now: 1)
        #expect(table.doubt(key, generation: 1, waiter: 4, now: 1) == .overloaded)
        table.leave(key, waiter: 2)
        #expect(table.doubt(key, generation: 1, waiter: 4, now: 1) == .wait)
        #expect(table.confirm(key, generation: 1, .stillGood, now: 2).map(\.waiter) == [1, 3, 4])
    }

    @Test("that a renewal replaces is over for those who waited for the renewal")
    mutating func renewal() {
        #expect(table.beginRenewal(key, now: 1) == true)
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 1) == .wait)
        let told = table.finish(key, with: .success(Session()), now: 2, chance: 0)
        #expect(told.map(\.waiter) == [1])
        #expect(table.doubt(key, generation: 1, waiter: 1, now: 2) == .over)
    }
}
