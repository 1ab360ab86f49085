// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("The session table")
struct SessionTableTests {
    let key = SessionKey(origin: Origin(scheme: .https, host: "bank.example"), challenge: "bank", credential: "")
    var table = SessionTable<Int>()

    private func session(_ token: String = "t", expiresAt: Int64? = nil) -> Session {
        Session(
            fields: [InjectedField(name: .authorization, value: Secret("Bearer \(token)"))], expiresAt: expiresAt)
    }

    private func failure(_ code: LoginFailure.Code, retryAt: Int64? = nil) -> LoginFailure {
        LoginFailure(code, challenge: "bank", detail: "", retryAt: retryAt)
    }

    @Test("of many exchanges one leads and the rest wait, and all get the session")
    mutating func singleFlight() {
        #expect(table.request(key, rejected: nil, waiter: 0, now: 0) == .go)
        for waiter in 1..<200 {
            #expect(table.request(key, rejected: nil, waiter: waiter, now: 0) == .wait)
        }
        let told = table.finish(key, with: .success(session()), now: 5, chance: 0)
        #expect(told.map(\.waiter) == Array(0..<200))
        #expect(told.allSatisfy { if case .won(let held) = $0.outcome { held.generation == 1 } else { false } })
    }

    @Test("a failure is shared by all who waited, once")
    mutating func sharedFailure() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.request(key, rejected: nil, waiter: 2, now: 0)
        let told = table.finish(key, with: .failure(failure(.rejected)), now: 1, chance: 0)
        #expect(told.map(\.outcome) == [.failed(failure(.rejected)), .failed(failure(.rejected))])
        #expect(table.request(key, rejected: nil, waiter: 3, now: 1) == .go)
    }

    @Test("what was left to another host has not failed: whoever waits asks again, and the next may lead")
    mutating func abandoned() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.request(key, rejected: nil, waiter: 2, now: 0)
        #expect(table.abandon(key).map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .go)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 0) == .wait)
    }

    @Test("the rejection of an older generation only means to use the newer session")
    mutating func generations() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session("a")), now: 0, chance: 0)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 0) == .go)
        _ = table.finish(key, with: .success(session("b")), now: 0, chance: 0)
        let current = try #require(table.held(key))
        #expect(current.generation == 2)
        #expect(table.request(key, rejected: 1, waiter: 3, now: 0) == .use(current))
    }

    @Test("a rejection of the current generation while a login runs waits for it")
    mutating func rejectionDuringLogin() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 0) == .go)
        #expect(table.request(key, rejected: 1, waiter: 3, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
    }

    @Test("an unknown outcome pauses with doubling, and callers are answered at once meanwhile")
    mutating func backOff() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 900) == .no(failure(.failed)))
        #expect(table.request(key, rejected: nil, waiter: 2, now: 1_000) == .go)
        _ = table.finish(key, with: .failure(failure(.timedOut)), now: 1_000, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 2_900) == .no(failure(.timedOut)))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 3_000) == .go)
    }

    @Test("the pause never ends before half of it, nor before the time that the server named")
    mutating func jitterAndRetryAfter() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 499) == .no(failure(.failed)))
        #expect(table.request(key, rejected: nil, waiter: 2, now: 500) == .go)
        let named = failure(.failed, retryAt: 60_500)
        _ = table.finish(key, with: .failure(named), now: 500, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 60_499) == .no(named))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 60_500) == .go)
    }

    @Test("a session serves until its end and is renewed ahead of it by one")
    mutating func renewal() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session(expiresAt: 3_600_000)), now: 0, chance: 0)
        let held = try #require(table.held(key))
        #expect(held.renewAt == 3_570_000)
        #expect(table.beginRenewal(key, now: 3_570_000) == true)
        #expect(table.beginRenewal(key, now: 3_570_000) == false)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 3_599_999) == .use(held))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 3_600_000) == .wait)
    }

    @Test("a short life is renewed after four fifths of it")
    mutating func shortLife() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session(expiresAt: 11_000)), now: 1_000, chance: 0)
        #expect(try #require(table.held(key)).renewAt == 9_000)
    }

    @Test("a failed renewal leaves the old session in service")
    mutating func failedRenewal() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session(expiresAt: 100_000)), now: 0, chance: 0)
        let held = try #require(table.held(key))
        #expect(table.beginRenewal(key, now: 90_000) == true)
        #expect(table.finish(key, with: .failure(failure(.failed)), now: 90_001, chance: 0).isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 90_002) == .use(held))
    }

    @Test("scopes of one client take turns, and the next is told to ask again")
    mutating func scopesTakeTurns() {
        var other = key
        other.scope = "accounts"
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .go)
        #expect(table.request(other, rejected: nil, waiter: 2, now: 0) == .wait)
        let told = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(told.map(\.waiter) == [1, 2])
        #expect(told.last?.outcome == .askAgain)
        #expect(table.request(other, rejected: nil, waiter: 2, now: 0) == .go)
    }

    @Test("more waiters than allowed are turned away, and places come free again")
    func overload() {
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 2))
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .go)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 0) == .overloaded)
        table.leave(key, waiter: 2)
        table.leave(key, waiter: 2)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 0) == .wait)
        #expect(table.finish(key, with: .success(session()), now: 0, chance: 0).count == 2)
        #expect(table.allHeld.count == 1)
    }

    @Test("dropping sessions also lifts the pause after a failure")
    mutating func drop() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0.5)
        #expect(table.drop { _ in true }.isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 1) == .go)
        _ = table.finish(key, with: .success(session()), now: 1, chance: 0)
        #expect(table.drop { $0 == key } == [key])
        #expect(table.held(key) == nil)
    }

    @Test("a failed login is known as failing until one succeeds, and is tried again after a while at most once")
    mutating func recovery() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.rejected)), now: 0, chance: 0)
        #expect(table.standing(of: key, now: 0) == .failing(failure(.rejected)))
        #expect(table.beginRecovery(key, now: 4_999) == false)
        #expect(table.beginRecovery(key, now: 5_000) == true)
        #expect(table.beginRecovery(key, now: 5_000) == false)
        _ = table.finish(key, with: .success(session()), now: 5_001, chance: 0)
        #expect(table.beginRecovery(key, now: 99_999) == false)
    }

    @Test("ever new scopes push out the oldest sessions at rest, not logins under way")
    func boundedKeys() {
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 100_000, keys: 8))
        let winning = SessionKey(origin: key.origin, challenge: "other", credential: "")
        #expect(table.request(winning, rejected: nil, waiter: 0, now: 0) == .go)
        for number in 0..<1_000 {
            var scoped = key
            scoped.scope = "scope\(number)"
            #expect(table.request(scoped, rejected: nil, waiter: number, now: 0) == .go)
            _ = table.finish(scoped, with: .success(session()), now: 0, chance: 0)
            #expect(table.held(scoped)?.generation == UInt64(number + 1))
            #expect(table.standings(now: 0).count <= 9)
        }
        #expect(table.request(winning, rejected: nil, waiter: 1, now: 0) == .wait)
    }

    @Test("a session of any ends is taken over, renewed and shown without a sum that does not fit")
    func extremes() {
        let moments: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]
        for wonAt in moments {
            for end in moments {
                for now in moments {
                    var table = SessionTable<Int>()
                    _ = table.adopt(key, session(expiresAt: end), wonAt: wonAt, now: now, chance: 1)
                    if let renewal = table.held(key)?.renewAt { #expect(renewal <= end) }
                    _ = table.request(key, rejected: nil, waiter: 1, now: now)
                    _ = table.finish(key, with: .success(session(expiresAt: end)), now: wonAt, chance: 1)
                    let failed = failure(.timedOut, retryAt: end)
                    _ = table.request(key, rejected: 2, waiter: 2, now: now)
                    _ = table.finish(key, with: .failure(failed), now: now, chance: 1)
                    _ = table.beginRecovery(key, now: wonAt)
                }
            }
        }
    }
}
