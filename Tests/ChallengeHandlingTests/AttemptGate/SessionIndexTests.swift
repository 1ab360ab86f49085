// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

/// A login costs the same however many sessions are held: each question goes to an index, never to all entries.
@Suite("The indexes of the session table", .serialized)
struct SessionIndexTests {
    private static let origin = Origin(scheme: .https, host: "bank.example")

    private func key(_ number: Int, scope: String = "") -> SessionKey {
        SessionKey(origin: Self.origin, challenge: "bank", credential: "caller-\(number)", scope: scope)
    }

    private func use(_ number: Int, password: String = "secret") -> CredentialUse {
        CredentialUse(
            key: LatchKey(origin: Self.origin, challenge: "bank", credential: "caller-\(number)"),
            credential: Credential(name: "caller-\(number)", fields: ["password": Secret(password)]))
    }

    private func failure(_ code: LoginFailure.Code = .rejected) -> LoginFailure {
        LoginFailure(code, challenge: "bank", detail: "")
    }

    // MARK: Growth

    @Test("N logins of N callers cost N times one, whether they succeed, wait for each other, or fail")
    func logins() {
        let isLinear = growsLinearly(from: 250) { count in
            var table = SessionTable<Int>(limits: SessionLimits(waiters: 100_000))
            table.keep((0..<count).map { key($0) }, of: count)
            for number in 0..<count {
                let (key, use) = (key(number), use(number))
                _ = table.request(key, rejected: nil, waiter: number, now: 0)
                _ = table.beginProactiveLogin(key, now: 0)
                _ = table.holdsSession(submitting: use, now: 0)
                let result: Result<Session, LoginFailure> =
                    number.isMultiple(of: 2) ? .success(Session(unverified: use)) : .failure(failure())
                _ = table.finish(key, with: result, isAccepted: true, now: 0, chance: 0)
                _ = table.states(ofSiblings: key, now: 0)
                if number.isMultiple(of: 4) { table.dropSessions(sending: use) }
            }
        }
        #expect(isLinear)
    }

    @Test("a tick visits the sessions that are due, not all that are kept")
    func tick() {
        var table = SessionTable<Int>()
        table.keep((0..<100).map { key($0) }, of: 100)
        #expect(Set(table.dueKeys(now: 0)) == Set((0..<100).map { key($0) }))
        for number in 0..<100 {
            #expect(table.beginProactiveLogin(key(number), now: 0) == true)
            let session = Session(fields: [], expiresAt: number == 7 ? 100_000 : nil)
            _ = table.finish(key(number), with: .success(session), now: 0, chance: 0)
        }
        #expect(table.dueKeys(now: 50_000) == [])
        // Twenty seconds, a fifth of its lifetime, before the end.
        #expect(table.dueKeys(now: 80_000) == [key(7)])
        #expect(table.dueKeys(now: 80_000) == [key(7)], "it stays due until its login begins")
        #expect(table.beginProactiveLogin(key(7), now: 80_000) == true)
        #expect(table.dueKeys(now: 90_000) == [])
        _ = table.finish(key(7), with: .failure(failure(.failed)), now: 90_000, chance: 0)
        #expect(table.dueKeys(now: 90_000) == [])
        #expect(table.dueKeys(now: 200_000) == [key(7)])
        _ = table.drop { $0 == key(3) }
        #expect(table.dueKeys(now: 90_000) == [key(3)])
    }

    // MARK: Room

    @Test("every configured login has room for its session, also beyond the limit for scopes that servers name")
    func room() {
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 10_000, keys: 8))
        table.keep([], of: 2_000)
        for number in 0..<2_000 {
            _ = table.request(key(number), rejected: nil, waiter: number, now: 0)
            _ = table.finish(key(number), with: .success(Session()), now: 0, chance: 0)
        }
        #expect(table.allHeld.count == 2_000)
        for number in 0..<100 {
            _ = table.request(key(0, scope: "s\(number)"), rejected: nil, waiter: number, now: 0)
            _ = table.finish(key(0, scope: "s\(number)"), with: .success(Session()), now: 0, chance: 0)
            #expect(table.states(now: 0).count <= 2_008)
        }
    }

    // MARK: Recovery

    @Test("a kept session whose renewals failed until its end is tried again, as one that never was established")
    func endedAfterFailure() {
        var table = SessionTable<Int>()
        table.keep([key(0)], of: 1)
        _ = table.beginProactiveLogin(key(0), now: 0)
        let session = Session(fields: [], expiresAt: 10_000)
        _ = table.finish(key(0), with: .success(session), now: 0, chance: 0)
        #expect(table.beginRenewal(key(0), now: 9_000) == true)
        _ = table.finish(key(0), with: .failure(failure(.failed)), now: 9_500, chance: 0)
        #expect(table.beginRecovery(key(0), now: 9_900) == false, "the session is still good")
        #expect(table.state(of: key(0), now: 20_000) == .failing(failure(.failed)))
        #expect(table.dueKeys(now: 20_000) == [key(0)])
        #expect(table.beginRecovery(key(0), now: 20_000) == true)
    }

    // MARK: The same as plain scans

    @Test("after any changes, each index has what a scan of all entries finds", arguments: 0..<40 as Range<UInt64>)
    func scans(seed: UInt64) {
        var chance = SplitMix(state: seed)
        func below(_ limit: Int) -> Int { Int(chance.next() % UInt64(limit)) }
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 50, keys: 12))
        var now: Int64 = 1_000
        let kept = (0..<4).map { key($0) }
        table.keep(kept, of: 2)
        for step in 0..<400 {
            let key = key(below(6), scope: ["", "a", "b"][below(3)])
            now += Int64(below(4_000))
            switch below(10) {
            case 0...2: _ = table.request(key, rejected: table.held(key)?.generation, waiter: step, now: now)
            case 3:
                let session = Session(fields: [], expiresAt: below(2) == 0 ? nil : now + 20_000)
                _ = table.finish(key, with: .success(session), now: now, chance: 0)
            case 4:
                _ = table.finish(key, with: .success(Session(unverified: use(below(3)))), now: now, chance: 0)
            case 5:
                _ = table.finish(key, with: .failure(failure(below(2) == 0 ? .failed : .rejected)), now: now, chance: 0)
            case 6: table.dropSessions(sending: use(below(3)))
            case 7: _ = table.drop { $0 == key }
            case 8: table.forgetFailures(of: below(2) == 0 ? "bank" : nil)
            default:
                if let generation = table.session(of: key)?.generation {
                    _ = table.recordVerification(
                        of: key, generation: generation, .accepted, by: below(step + 1), now: now, chance: 0)
                }
            }
            check(table, kept, now: now, step: step)
        }
    }

    private func check(_ table: SessionTable<Int>, _ kept: [SessionKey], now: Int64, step: Int) {
        let all = table.entries.all
        for key in all.keys {
            #expect(table.entries.siblings(of: key) == Set(all.keys.filter(key.isSibling)), "step \(step)")
        }
        #expect(table.entries.failing == Set(all.filter { $0.value.backOff.failure != nil }.keys), "step \(step)")
        for number in 0..<3 {
            let latch = use(number).key
            let users = all.filter { [$0.value.held, $0.value.unverified].contains { $0?.session.use?.key == latch } }
            #expect(table.entries.users(of: latch) == Set(users.keys), "step \(step)")
        }
        var table = table
        let due = Set(table.dueKeys(now: now))
        for key in kept {
            var trial = table
            let begins = trial.beginProactiveLogin(key, now: now) || trial.beginRecovery(key, now: now)
            #expect(!begins || due.contains(key), "step \(step): \(key)")
        }
        #expect(due.isSubset(of: kept))
    }
}
