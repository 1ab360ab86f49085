// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling

@Suite("The User-Agent that sessions of a table carry")
struct SessionUserAgentTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "www.example.com"), challenge: "c", credential: "a")

    private func logIn(
        _ table: inout SessionTable<Int>, _ session: Session = Session(cookies: SessionCookies(CookieJar()))
    ) {
        _ = table.request(key, rejected: table.held(key)?.generation, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session), now: 0, chance: 0)
    }

    private func carried(_ table: SessionTable<Int>) -> [String] {
        table.held(key)?.session.fields.filter { $0.name == .userAgent }.map { $0.value.revealText() } ?? []
    }

    @Test("a bound session carries it at once, and so does each one after it")
    func bound() {
        var table = SessionTable<Int>()
        logIn(&table)
        let (generation, version) = (table.held(key)?.generation, table.version)
        var isNew = table.bindUserAgent("a/1", of: key)
        #expect(isNew && carried(table) == ["a/1"])
        #expect(table.held(key)?.generation == generation && table.version != version)
        isNew = table.bindUserAgent("a/1", of: key)
        #expect(!isNew)
        logIn(&table)
        #expect(carried(table) == ["a/1"])
        table.releaseUserAgent(of: key, now: 0)
        #expect(carried(table) == ["a/1"])
        isNew = table.bindUserAgent("b/2", of: key)
        #expect(isNew && carried(table) == ["b/2"])
    }

    @Test("a suspicion concerns later sessions, and is dropped with its field")
    func suspected() {
        var table = SessionTable<Int>()
        logIn(&table)
        table.suspectUserAgent("a/1", of: key)
        #expect(carried(table).isEmpty)
        logIn(&table)
        #expect(carried(table) == ["a/1"])
        table.releaseUserAgent(of: key, now: 1_000)
        #expect(carried(table).isEmpty)
        #expect(!table.mayTryUserAgent(of: key, now: 2_000))
        #expect(table.mayTryUserAgent(of: key, now: 601_000) && table.mayTryUserAgent(of: key, now: -1_000_000))
    }

    @Test("a session without cookies carries none")
    func token() {
        var table = SessionTable<Int>()
        logIn(&table, Session())
        _ = table.bindUserAgent("a/1", of: key)
        #expect(carried(table).isEmpty)
    }
}

@Suite("Requests that need no session as far as the table knows")
struct FirstRequestTableTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "www.example.com"), challenge: "c", credential: "a")
    private var table = SessionTable<Int>(limits: SessionLimits(waiters: 2))

    @Test("one goes ahead, others wait for what is left of a second, and a full table makes none wait")
    mutating func limits() {
        #expect(table.beginFirstRequest(key, waiter: 1, now: 5_000) == .lead)
        #expect(table.beginFirstRequest(key, waiter: 2, now: 5_400) == .wait(600))
        #expect(table.beginFirstRequest(key, waiter: 3, now: 5_999) == .wait(1))
        #expect(table.beginFirstRequest(key, waiter: 4, now: 5_999) == .go(isLasting: false))
        #expect(table.beginFirstRequest(key, waiter: 5, now: 6_000) == .go(isLasting: false))
        table.removeWaiter(2, of: key)
        #expect(table.waiterCount == 1)
        // The clock was set back.
        #expect(table.beginFirstRequest(key, waiter: 6, now: 0) == .lead)
    }

    @Test("an open answer wakes the waiters, and nobody waits until a login has run")
    mutating func open() {
        _ = table.beginFirstRequest(key, waiter: 1, now: 0)
        _ = table.beginFirstRequest(key, waiter: 2, now: 0)
        #expect(table.endFirstRequest(key, .open, waiter: 9).isEmpty)
        #expect(table.endFirstRequest(key, .open, waiter: 1).map(\.waiter) == [2])
        #expect(table.waiterCount == 0)
        #expect(table.beginFirstRequest(key, waiter: 3, now: 0) == .go(isLasting: true))
        _ = table.request(key, rejected: nil, waiter: 3, now: 0)
        _ = table.finish(key, with: .success(Session(fields: [], expiresAt: 10)), now: 0, chance: 0)
        #expect(table.beginFirstRequest(key, waiter: 4, now: 5) == .go(isLasting: false))
        #expect(table.beginFirstRequest(key, waiter: 4, now: 20) == .lead)
    }

    @Test("after a challenge others wait for the login, and its session is theirs")
    mutating func asked() {
        _ = table.beginFirstRequest(key, waiter: 1, now: 0)
        _ = table.beginFirstRequest(key, waiter: 2, now: 0)
        #expect(table.endFirstRequest(key, .asked, waiter: 1).isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 1, now: 1) == .logIn)
        #expect(table.beginFirstRequest(key, waiter: 3, now: 1_000) == .go(isLasting: false))
        let told = table.finish(key, with: .success(Session()), now: 2, chance: 0)
        #expect(Set(told.map(\.waiter)) == [1, 2])
    }

    @Test("after a failed login nobody waits during the pause")
    mutating func failed() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        let failure = LoginFailure(.failed, challenge: "c", detail: "")
        _ = table.finish(key, with: .failure(failure), now: 0, chance: 0)
        #expect(table.beginFirstRequest(key, waiter: 1, now: 0) == .go(isLasting: true))
    }
}
