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
