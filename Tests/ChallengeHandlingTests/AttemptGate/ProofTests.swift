// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

@Suite("Sessions that the server has not accepted yet")
struct ProofTests {
    typealias Table = SessionTable<Int>

    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "corp", credential: "ann")
    private let refused = LoginFailure(.rejected, challenge: "corp", detail: "")

    private func session(_ password: String = "1234") -> Session {
        let credential = Credential(name: "ann", fields: ["password": Secret(password)])
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        return Session(unproven: CredentialUse(key: latch, credential: credential))
    }

    /// A table in which 1 tries a session and 2 and 3 wait.
    private func trying(_ table: inout Table) -> HeldSession? {
        for waiter in 1...3 { _ = table.request(key, rejected: nil, waiter: waiter, now: 0) }
        let told = table.finish(key, with: .success(session()), now: 0, chance: 0)
        #expect(told.map(\.waiter) == [1])
        guard case .prove(_, let trial) = told.first?.outcome else { return nil }
        return trial
    }

    @Test("the first who waits tries it, the others go on waiting, and nobody else sees it")
    func oneAtATime() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
        let told = table.judge(key, generation: trial.generation, .accepted, by: 1)
        #expect(told.map(\.waiter) == [2, 3, 4])
        #expect(told.allSatisfy { $0.outcome == .won(trial) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .use(trial))
    }

    @Test("where nothing was decided the next tries it")
    func handedOn() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        let told = table.judge(key, generation: trial.generation, .undecided, by: 1)
        #expect(told.map(\.waiter) == [2])
        #expect(told.first?.outcome == .prove(key, trial))
        _ = table.judge(key, generation: trial.generation, .undecided, by: 2)
        _ = table.judge(key, generation: trial.generation, .undecided, by: 3)
        #expect(table.request(key, rejected: nil, waiter: 9, now: 0) == .prove(trial))
    }

    @Test("who does not try it has no say")
    func noSay() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        #expect(table.judge(key, generation: trial.generation, .accepted, by: 2).isEmpty)
        #expect(table.held(key) == nil)
    }

    @Test("what was found of an earlier one says nothing of it")
    func earlierOne() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.reject(key, generation: trial.generation - 1, refused, now: 0)
        _ = table.judge(key, generation: trial.generation - 1, .accepted, by: 1)
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 9, now: 0) == .prove(trial))
    }

    @Test("one too old is dropped, and all ask again")
    func outdated() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        let told = table.judge(key, generation: trial.generation, .outdated, by: 1)
        #expect(told.map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.request(key, rejected: trial.generation, waiter: 1, now: 0) == .go)
    }

    @Test("a session that was refused on trial is put to the server once more by one, while all others wait")
    func confirmed() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        #expect(table.doubt(key, generation: trial.generation, waiter: 1, now: 0) == .confirm(trial))
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
        let told = table.confirm(key, generation: trial.generation, .stillGood, now: 0)
        #expect(told.map(\.waiter) == [2, 3, 1, 4])
        #expect(told.allSatisfy { $0.outcome == .kept(trial, isConfirmed: true) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .use(trial))
    }

    @Test("a credential that is refused while all use it goes along with no request until it is confirmed")
    func hidden() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        #expect(table.doubt(key, generation: trial.generation, waiter: 6, now: 0) == .confirm(trial))
        #expect(table.held(key) == nil)
        // One that was under way is refused as well.
        #expect(table.doubt(key, generation: trial.generation, waiter: 7, now: 0) == .wait)
        #expect(table.request(key, rejected: nil, waiter: 8, now: 0) == .wait)
        let told = table.confirm(key, generation: trial.generation, .stillGood, now: 0)
        #expect(told.map(\.waiter) == [6, 7, 8])
        #expect(table.held(key) == trial)
    }

    @Test("a rejected credential fails all who wait, and its session is gone")
    func rejected() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.doubt(key, generation: trial.generation, waiter: 1, now: 0)
        let told = table.reject(key, generation: trial.generation, refused, now: 0)
        #expect(told.map(\.waiter) == [2, 3, 1])
        #expect(told.allSatisfy { $0.outcome == .failed(self.refused) })
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .go)
    }

    @Test(
        "a credential of which nothing can be learned is given up for a pause that doubles, until a server accepts it")
    func unknown() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.doubt(key, generation: trial.generation, waiter: 1, now: 0)
        let told = table.confirm(key, generation: trial.generation, .unknown, now: 0)
        guard case .failed(let failure)? = told.first?.outcome else {
            Issue.record("\(told)")
            return
        }
        #expect(failure.isUnknown && failure.detail.contains("prove-at"))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 499) == .no(failure))
        #expect(table.request(key, rejected: nil, waiter: 5, now: 500) == .go)
    }

    @Test("a refusal of an older session says nothing about the present one")
    func old() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        #expect(table.doubt(key, generation: trial.generation - 1, waiter: 5, now: 0) == .over)
        #expect(table.held(key) == trial)
    }
}
