// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
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

    /// Puts `table` into the state in which 1 tries a session, and 2 and 3 wait.
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
        // A request in progress is refused as well.
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

    @Test("a credential that no other address can confirm is sent again at the stated time")
    func postponed() throws {
        var table = Table()
        let unverified = try #require(trying(&table))
        _ = table.requestConfirmation(of: key, generation: unverified.generation, waiter: 1, now: 0)
        let told = table.confirm(key, generation: unverified.generation, .postponed(until: 60_000), now: 0)
        guard case .failed(let failure)? = told.first?.outcome else {
            Issue.record("\(told)")
            return
        }
        #expect(failure.isUnknown && failure.retryAt == 60_000)
        #expect(table.request(key, rejected: nil, waiter: 5, now: 59_999) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 60_000) == .logIn)
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

    @Test("a confirmation has a number, which shows whether it began before a refusal")
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
