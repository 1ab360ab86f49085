// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Session table verifies an unverified session")
struct SessionVerificationTests {
    typealias Table = SessionTable<Int>

    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "corp", credential: "ann")
    private let refused = LoginFailure(.rejected, challenge: "corp", detail: "")

    private func session(_ password: String = "1234") -> Session {
        let credential = Credential(name: "ann", fields: ["password": Secret(password)])
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        return Session(unverified: CredentialUse(key: latch, credential: credential))
    }

    /// A table in which 1 tries a session and 2 and 3 wait.
    private func trying(_ table: inout Table) -> HeldSession? {
        for waiter in 1...3 { _ = table.request(key, rejected: nil, waiter: waiter, now: 0) }
        let told = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(told.map(\.waiter) == [1])
        guard case .verify(_, let unverified) = told.first?.outcome else { return nil }
        return unverified
    }

    @Test("the first waiter verifies an unverified session, while the others wait")
    func oneAtATime() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
        let told = table.recordVerification(
            of: key, generation: unverified.generation, .accepted, by: 1, now: 0, chance: 0)
        #expect(told.map(\.waiter) == [2, 3, 4])
        #expect(told.allSatisfy { $0.outcome == .established(unverified) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .use(unverified))
    }

    @Test("after an undecided result, the next waiter verifies the session")
    func handedOn() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        let told = table.recordVerification(
            of: key, generation: unverified.generation, .undecided, by: 1, now: 0, chance: 0)
        #expect(told.map(\.waiter) == [2])
        #expect(told.first?.outcome == .verify(key, unverified))
        _ = table.recordVerification(of: key, generation: unverified.generation, .undecided, by: 2, now: 0, chance: 0)
        _ = table.recordVerification(of: key, generation: unverified.generation, .undecided, by: 3, now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 9, now: 0) == .verify(unverified))
    }

    @Test(
        "a credential that was sent without a usable answer pauses, all who wait are answered, and the next trial is one"
    )
    func unanswered() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        let told = table.recordVerification(
            of: key, generation: unverified.generation, .unanswered(.lost), by: 1, now: 0, chance: 0)
        #expect(told.map(\.waiter) == [2, 3])
        guard case .failed(let failure)? = told.first?.outcome else {
            Issue.record("\(told)")
            return
        }
        #expect(failure.code == .failed && failure.isUnknown)
        #expect(table.state(of: key, now: 0) == .failing(failure))
        #expect(table.request(key, rejected: nil, waiter: 4, now: 499) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 500) == .logIn)
        #expect(table.request(key, rejected: nil, waiter: 6, now: 500) == .wait)
    }

    @Test("trials without an answer double the pause, and those whose callers leave do not", arguments: [true, false])
    func pauses(isAbandoned: Bool) throws {
        var table = Table()
        var now: Int64 = 0
        for pause in isAbandoned ? [500, 500, 500, 500] : [500, 1_000, 2_000, 4_000] as [Int64] {
            #expect(table.request(key, rejected: nil, waiter: 1, now: now) == .logIn)
            let told = table.finish(key, with: .success(session()), now: now, chance: 0)
            guard case .verify(_, let tried)? = told.first?.outcome else {
                Issue.record("\(told)")
                return
            }
            _ = table.recordVerification(
                of: key, generation: tried.generation, .unanswered(isAbandoned ? .abandoned : .timedOut), by: 1,
                now: now,
                chance: 0)
            guard case .refuse = table.request(key, rejected: nil, waiter: 2, now: now + pause - 1) else {
                Issue.record("a trial after less than \(pause) ms")
                return
            }
            now += pause
        }
    }

    @Test("a trial that a 503 answers waits for the time in its Retry-After")
    func retryAfter() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.recordVerification(
            of: key, generation: unverified.generation, .unanswered(.status(503, retryAt: 30_000)), by: 1, now: 0,
            chance: 0)
        guard case .refuse(let failure) = table.request(key, rejected: nil, waiter: 4, now: 29_999) else {
            Issue.record("a trial before the server's time")
            return
        }
        #expect(failure.detail.contains("503"))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 30_000) == .logIn)
    }

    @Test("only the verifier of a session can report a result")
    func noSay() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        #expect(
            table.recordVerification(of: key, generation: unverified.generation, .accepted, by: 2, now: 0, chance: 0)
                .isEmpty)
        #expect(table.held(key) == nil)
    }

    @Test("a result for an earlier generation does not affect the unverified session")
    func earlierOne() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.reject(key, generation: unverified.generation - 1, refused, now: 0)
        _ = table.recordVerification(
            of: key, generation: unverified.generation - 1, .accepted, by: 1, now: 0, chance: 0)
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 9, now: 0) == .verify(unverified))
    }

    @Test("an expired unverified session is dropped, and all waiters ask again")
    func outdated() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        let told = table.recordVerification(
            of: key, generation: unverified.generation, .outdated, by: 1, now: 0, chance: 0)
        #expect(told.map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.request(key, rejected: unverified.generation, waiter: 1, now: 0) == .logIn)
    }

    @Test(
        "a session refused before its verification is confirmed by one exchange, while all others wait"
    )
    func confirmed() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        #expect(
            table.requestConfirmation(of: key, generation: unverified.generation, waiter: 1, now: 0)
                == .confirm(unverified))
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
        let told = table.confirm(key, generation: unverified.generation, .stillGood, now: 0)
        #expect(told.map(\.waiter) == [2, 3, 1, 4])
        #expect(told.allSatisfy { $0.outcome == .kept(unverified, confirmation: 1) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .use(unverified))
    }

    @Test("a refused credential that is in use is not sent with any request until its confirmation")
    func hidden() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.recordVerification(of: key, generation: unverified.generation, .accepted, by: 1, now: 0, chance: 0)
        #expect(
            table.requestConfirmation(of: key, generation: unverified.generation, waiter: 6, now: 0)
                == .confirm(unverified))
        #expect(table.held(key) == nil)
        // One that was under way is refused as well.
        #expect(table.requestConfirmation(of: key, generation: unverified.generation, waiter: 7, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 8, now: 0) == .wait)
        let told = table.confirm(key, generation: unverified.generation, .stillGood, now: 0)
        #expect(told.map(\.waiter) == [6, 7, 8])
        #expect(table.held(key) == unverified)
    }

    @Test("a rejected credential fails all waiters, and its session is dropped")
    func rejected() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.requestConfirmation(of: key, generation: unverified.generation, waiter: 1, now: 0)
        let told = table.reject(key, generation: unverified.generation, refused, now: 0)
        #expect(told.map(\.waiter) == [2, 3, 1])
        #expect(told.allSatisfy { $0.outcome == .failed(self.refused) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .logIn)
    }

    @Test(
        "a credential without a usable confirmation is paused, twice as long each time, until a server accepts it")
    func unknown() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.requestConfirmation(of: key, generation: unverified.generation, waiter: 1, now: 0)
        let told = table.confirm(key, generation: unverified.generation, .unknown, now: 0)
        guard case .failed(let failure)? = told.first?.outcome else {
            Issue.record("\(told)")
            return
        }
        #expect(failure.isUnknown && failure.detail.contains("prove-at"))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 499) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 500) == .logIn)
    }

    @Test("a refusal of an older session does not affect the present one")
    func old() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.recordVerification(of: key, generation: unverified.generation, .accepted, by: 1, now: 0, chance: 0)
        #expect(table.requestConfirmation(of: key, generation: unverified.generation - 1, waiter: 5, now: 0) == .over)
        #expect(table.held(key) == unverified)
    }
}
