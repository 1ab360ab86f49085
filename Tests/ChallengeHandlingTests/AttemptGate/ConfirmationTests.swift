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

    @Test("a session in doubt is confirmed once for all exchanges, stays in use, and is not renewed meanwhile")
    mutating func once() {
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1) == .confirm(held))
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 2, now: 1) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 1) == .use(held))
        #expect(table.beginRenewal(key, now: 1) == false)
        let told = table.confirm(key, generation: 1, .stillGood, now: 2)
        #expect(told.map(\.waiter) == [1, 2])
        #expect(told.allSatisfy { $0.outcome == .kept(held, confirmation: 1) })
        #expect(table.held(key) == held)
        #expect(table.beginRenewal(key, now: 2) == true)
    }

    @Test("a session that a confirmation ends is dropped, and the first to ask again starts one login")
    mutating func over() {
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1)
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 2, now: 1)
        #expect(table.confirm(key, generation: 1, .over, now: 2).map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 2) == .over)
        #expect(table.request(key, rejected: 1, waiter: 1, now: 2) == .logIn)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 2) == .wait)
    }

    @Test("a session without a usable confirmation is kept, and not checked again for five seconds")
    mutating func unknown() {
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1)
        let told = table.confirm(key, generation: 1, .unknown, now: 2)
        #expect(told.map(\.outcome) == [.kept(held, confirmation: nil)])
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 5_001) == .keep)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 5_002) == .confirm(held))
        _ = table.confirm(key, generation: 1, .unknown, now: 5_003)
        #expect(table.held(key) == held)
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 10_003)
        #expect(table.confirm(key, generation: 1, .unknown, now: 10_004).map(\.outcome) == [.askAgain])
        #expect(table.held(key) == nil, "three in a row")
    }

    @Test("a session that was dropped or replaced during its confirmation is over")
    mutating func dropped() {
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1)
        _ = table.drop { _ in true }
        #expect(table.confirm(key, generation: 1, .stillGood, now: 2).map(\.outcome) == [.askAgain])
        #expect(table.held(key) == nil)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 2) == .over)
    }

    @Test("a confirmation of an earlier generation does not affect the held session")
    mutating func earlier() {
        _ = table.request(key, rejected: 1, waiter: 1, now: 1)
        _ = table.finish(key, with: .success(Session(expiresAt: 100_000)), now: 1, chance: 0)
        _ = table.requestConfirmation(of: key, generation: 2, waiter: 1, now: 1)
        #expect(table.confirm(key, generation: 1, .over, now: 2).map(\.outcome) == [.askAgain])
        #expect(table.held(key)?.generation == 2)
    }

    @Test("the exchanges that wait for a confirmation are limited, and one that leaves frees its entry")
    mutating func bounds() {
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1)
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 2, now: 1)
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 3, now: 1)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 4, now: 1) == .overloaded)
        table.removeWaiter(2, of: key)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 4, now: 1) == .wait)
        #expect(table.confirm(key, generation: 1, .stillGood, now: 2).map(\.waiter) == [1, 3, 4])
    }

    @Test("a confirmation has a number, which tells if it began before a refusal")
    mutating func late() {
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1)
        let before = table.confirmations
        _ = table.requestConfirmation(of: key, generation: 1, waiter: 2, now: 2)
        _ = table.confirm(key, generation: 1, .stillGood, now: 3)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 2, now: 3) == .confirm(held))
        let told = table.confirm(key, generation: 1, .stillGood, now: 4)
        #expect(before == 1)
        #expect(told.map(\.outcome) == [.kept(held, confirmation: 2)])
    }

    @Test("a session in doubt that a renewal replaces is over for the waiters")
    mutating func renewal() {
        #expect(table.beginRenewal(key, now: 1) == true)
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 1) == .wait)
        let told = table.finish(key, with: .success(Session()), now: 2, chance: 0)
        #expect(told.map(\.waiter) == [1])
        #expect(table.requestConfirmation(of: key, generation: 1, waiter: 1, now: 2) == .over)
    }
}
