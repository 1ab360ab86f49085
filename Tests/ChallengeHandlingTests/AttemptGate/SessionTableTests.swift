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

    @Test("one of many exchanges starts the login, the others wait, and all get the session")
    mutating func singleFlight() {
        #expect(table.request(key, rejected: nil, waiter: 0, now: 0) == .logIn)
        for waiter in 1..<200 {
            #expect(table.request(key, rejected: nil, waiter: waiter, now: 0) == .wait)
        }
        let told = table.finish(key, with: .success(session()), now: 5, chance: 0)
        #expect(told.map(\.waiter) == Array(0..<200))
        #expect(told.allSatisfy { if case .established(let held) = $0.outcome { held.generation == 1 } else { false } })
    }

    @Test("a failed login is reported once to all waiters")
    mutating func sharedFailure() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.request(key, rejected: nil, waiter: 2, now: 0)
        let told = table.finish(key, with: .failure(failure(.rejected)), now: 1, chance: 0)
        #expect(told.map(\.outcome) == [.failed(failure(.rejected)), .failed(failure(.rejected))])
        #expect(table.request(key, rejected: nil, waiter: 3, now: 1) == .logIn)
    }

    @Test("a login left to another node is not a failure: waiters ask again, and the next one may log in")
    mutating func abandoned() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.request(key, rejected: nil, waiter: 2, now: 0)
        #expect(table.abandon(key).map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .logIn)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 0) == .wait)
    }

    @Test("a session that was dropped or replaced is outdated, and one that is hidden is not")
    mutating func outdated() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        #expect(table.isOutdated(key, generation: 1))
        _ = table.finish(key, with: .success(session("a")), now: 0, chance: 0)
        #expect(!table.isOutdated(key, generation: 1))
        _ = table.request(key, rejected: 1, waiter: 2, now: 0)
        #expect(table.isOutdated(key, generation: 1))
        var unverified = session("b")
        unverified.isVerified = false
        _ = table.finish(key, with: .success(unverified), now: 0, chance: 0)
        #expect(!table.isOutdated(key, generation: 2))
        #expect(table.isOutdated(key, generation: 1))
    }

    @Test("a rejection of an older generation leads to the newer session")
    mutating func generations() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session("a")), now: 0, chance: 0)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 0) == .logIn)
        _ = table.finish(key, with: .success(session("b")), now: 0, chance: 0)
        let current = try #require(table.held(key))
        #expect(current.generation == 2)
        #expect(table.request(key, rejected: 1, waiter: 3, now: 0) == .use(current))
    }

    @Test("a rejected session is gone from every worker's snapshot at once, not only after the next login")
    mutating func rejectedSession() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session()), now: 0, chance: 0)
        let version = table.version
        #expect(table.request(key, rejected: 1, waiter: 2, now: 0) == .logIn)
        #expect(table.held(key) == nil && table.version != version)
    }

    @Test("a rejection of the current generation during a login waits for the login")
    mutating func rejectionDuringLogin() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(table.request(key, rejected: 1, waiter: 2, now: 0) == .logIn)
        #expect(table.request(key, rejected: 1, waiter: 3, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
    }

    @Test("unknown outcomes cause doubling pauses, during which callers are answered at once")
    mutating func backOff() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 900) == .refuse(failure(.failed)))
        #expect(table.request(key, rejected: nil, waiter: 2, now: 1_000) == .logIn)
        _ = table.finish(key, with: .failure(failure(.timedOut)), now: 1_000, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 2_900) == .refuse(failure(.timedOut)))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 3_000) == .logIn)
    }

    @Test("a login that found nothing to add does not shorten the next pause")
    mutating func backOffAfterEmptySession() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 1_000) == .logIn)
        _ = table.finish(key, with: .success(Session()), now: 1_000, chance: 0)
        #expect(table.request(key, rejected: 1, waiter: 3, now: 1_000) == .logIn)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 1_000, chance: 0.999)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 2_900) == .refuse(failure(.failed)))
        #expect(table.request(key, rejected: nil, waiter: 4, now: 3_000) == .logIn)
    }

    @Test("a pause after a failed login lasts at least half its length, and until the server's time")
    mutating func jitterAndRetryAfter() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 499) == .refuse(failure(.failed)))
        #expect(table.request(key, rejected: nil, waiter: 2, now: 500) == .logIn)
        let named = failure(.failed, retryAt: 60_500)
        _ = table.finish(key, with: .failure(named), now: 500, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 60_499) == .refuse(named))
        #expect(table.request(key, rejected: nil, waiter: 3, now: 60_500) == .logIn)
    }

    @Test("a session is valid until its expiry, and renewed before it by one exchange")
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

    @Test("a session with a short lifetime is renewed after four fifths of the lifetime")
    mutating func shortLife() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session(expiresAt: 11_000)), now: 1_000, chance: 0)
        #expect(try #require(table.held(key)).renewAt == 9_000)
    }

    @Test("a failed renewal leaves the old session in use")
    mutating func failedRenewal() throws {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .success(session(expiresAt: 100_000)), now: 0, chance: 0)
        let held = try #require(table.held(key))
        #expect(table.beginRenewal(key, now: 90_000) == true)
        #expect(table.finish(key, with: .failure(failure(.failed)), now: 90_001, chance: 0).isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 90_002) == .use(held))
    }

    @Test("logins for different scopes of one client take turns, and waiters ask again")
    mutating func scopesTakeTurns() {
        var other = key
        other.scope = "accounts"
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .logIn)
        #expect(table.request(other, rejected: nil, waiter: 2, now: 0) == .wait)
        let told = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(told.map(\.waiter) == [1, 2])
        #expect(told.last?.outcome == .askAgain)
        #expect(table.request(other, rejected: nil, waiter: 2, now: 0) == .logIn)
    }

    @Test("waiters beyond the limit are refused, until others leave")
    func overload() {
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 2))
        #expect(table.request(key, rejected: nil, waiter: 1, now: 0) == .logIn)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 0) == .overloaded)
        table.removeWaiter(2, of: key)
        table.removeWaiter(2, of: key)
        #expect(table.request(key, rejected: nil, waiter: 3, now: 0) == .wait)
        #expect(table.finish(key, with: .success(session()), now: 0, chance: 0).count == 2)
        #expect(table.allHeld.count == 1)
    }

    @Test("dropping sessions also ends the pause after a failure")
    mutating func drop() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.failed)), now: 0, chance: 0.5)
        #expect(table.drop { _ in true }.isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 2, now: 1) == .logIn)
        _ = table.finish(key, with: .success(session()), now: 1, chance: 0)
        #expect(table.drop { $0 == key } == [key])
        #expect(table.held(key) == nil)
    }

    @Test("a failed login counts as failing until one succeeds, and recovery tries at most once per pause")
    mutating func recovery() {
        _ = table.request(key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(key, with: .failure(failure(.rejected)), now: 0, chance: 0)
        #expect(table.state(of: key, now: 0) == .failing(failure(.rejected)))
        #expect(table.beginRecovery(key, now: 4_999) == false)
        #expect(table.beginRecovery(key, now: 5_000) == true)
        #expect(table.state(of: key, now: 5_000) == .loggingIn(waiters: 0, after: failure(.rejected)))
        #expect(table.beginRecovery(key, now: 5_000) == false)
        _ = table.finish(key, with: .success(session()), now: 5_001, chance: 0)
        #expect(table.beginRecovery(key, now: 99_999) == false)
    }

    @Test("new scopes evict the oldest idle sessions, never running logins")
    func boundedKeys() {
        var table = SessionTable<Int>(limits: SessionLimits(waiters: 100_000, keys: 8))
        let loggingIn = SessionKey(origin: key.origin, challenge: "other", credential: "")
        #expect(table.request(loggingIn, rejected: nil, waiter: 0, now: 0) == .logIn)
        for number in 0..<1_000 {
            var scoped = key
            scoped.scope = "scope\(number)"
            #expect(table.request(scoped, rejected: nil, waiter: number, now: 0) == .logIn)
            _ = table.finish(scoped, with: .success(session()), now: 0, chance: 0)
            #expect(table.held(scoped)?.generation == UInt64(number + 1))
            #expect(table.states(now: 0).count <= 9)
        }
        #expect(table.request(loggingIn, rejected: nil, waiter: 1, now: 0) == .wait)
    }

    @Test("a session with any expiry is adopted, renewed and listed without overflow")
    func extremes() {
        let moments: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]
        for establishedAt in moments {
            for end in moments {
                for now in moments {
                    var table = SessionTable<Int>()
                    _ = table.adopt(key, session(expiresAt: end), establishedAt: establishedAt, now: now, chance: 1)
                    if let renewal = table.held(key)?.renewAt { #expect(renewal <= end) }
                    _ = table.request(key, rejected: nil, waiter: 1, now: now)
                    _ = table.finish(key, with: .success(session(expiresAt: end)), now: establishedAt, chance: 1)
                    let failed = failure(.timedOut, retryAt: end)
                    _ = table.request(key, rejected: 2, waiter: 2, now: now)
                    _ = table.finish(key, with: .failure(failed), now: now, chance: 1)
                    _ = table.beginRecovery(key, now: establishedAt)
                }
            }
        }
    }
}
