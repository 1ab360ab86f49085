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

    @Test("who still tries what another found to be refused keeps nobody waiting")
    func triedInVain() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        guard case .doubt = table.refuse(key, generation: trial.generation, route: 0, by: 2).refusal else {
            return #expect(Bool(false), "one refusal of a credential accepted before is a matter of the route")
        }
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .prove(trial))
        guard case .close = table.refuse(key, generation: trial.generation, route: 1, by: 3).refusal else {
            return #expect(Bool(false), "two routes have refused it")
        }
        _ = table.finish(key, with: .failure(refused), now: 0, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 5, now: 0) == .lead)
        #expect(table.judge(key, generation: trial.generation, .accepted, by: 4).isEmpty)
        #expect(table.held(key) == nil)
        #expect(table.finish(key, with: .failure(refused), now: 0, chance: 0).map(\.waiter) == [5])
    }

    @Test("who does not try it has no say")
    func noSay() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        #expect(table.judge(key, generation: trial.generation, .accepted, by: 2).isEmpty)
        #expect(table.held(key) == nil)
    }

    @Test("one too old is dropped, and all ask again")
    func outdated() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        let told = table.judge(key, generation: trial.generation, .outdated, by: 1)
        #expect(told.map(\.outcome) == [.askAgain, .askAgain])
        #expect(table.request(key, rejected: trial.generation, waiter: 1, now: 0) == .lead)
    }

    @Test("a credential never accepted is over at its first refusal, for all who wait")
    func overAtOnce() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        let (refusal, told) = table.refuse(key, generation: trial.generation, route: 7, by: 1)
        guard case .close(let use) = refusal else {
            Issue.record("\(refusal)")
            return
        }
        #expect(use.key.challenge == "corp")
        #expect(told.isEmpty)
        // Until the latch is closed nobody leads.
        #expect(table.request(key, rejected: nil, waiter: 4, now: 0) == .wait)
        let failed = table.finish(key, with: .failure(self.refused), now: 0, chance: 0)
        #expect(failed.map(\.waiter) == [2, 3, 4])
        #expect(failed.allSatisfy { $0.outcome == .failed(self.refused) })
    }

    @Test("one accepted before is doubted at one route twice, and is over at the third refusal")
    func doubtedHere() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        guard case .doubt = table.refuse(key, generation: trial.generation, route: 7, by: 5).refusal else {
            Issue.record("not doubted")
            return
        }
        // Only one at a time uses it from now on.
        #expect(table.held(key) == nil)
        #expect(table.request(key, rejected: nil, waiter: 6, now: 0) == .prove(trial))
        #expect(table.request(key, rejected: nil, waiter: 7, now: 0) == .wait)
        let second = table.refuse(key, generation: trial.generation, route: 7, by: 6)
        #expect(second.told.map(\.waiter) == [7])
        guard case .doubt = second.refusal else {
            Issue.record("not doubted again")
            return
        }
        guard case .close = table.refuse(key, generation: trial.generation, route: 7, by: 7).refusal else {
            Issue.record("not over")
            return
        }
    }

    @Test("one accepted before is over when two routes refuse it")
    func refusedElsewhere() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        _ = table.refuse(key, generation: trial.generation, route: 7, by: 5)
        #expect(table.request(key, rejected: nil, waiter: 6, now: 0) == .prove(trial))
        guard case .close = table.refuse(key, generation: trial.generation, route: 8, by: 6).refusal else {
            Issue.record("not over")
            return
        }
    }

    @Test("accepted elsewhere it serves all again, and old refusals count no more")
    func acceptedElsewhere() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        for waiter in 10..<20 {
            guard case .doubt = table.refuse(key, generation: trial.generation, route: waiter, by: 0).refusal else {
                Issue.record("not doubted")
                return
            }
            #expect(table.request(key, rejected: nil, waiter: waiter, now: 0) == .prove(trial))
            _ = table.judge(key, generation: trial.generation, .accepted, by: waiter)
            #expect(table.held(key) == trial)
        }
    }

    @Test("a refusal of an older session says nothing about the present one")
    func old() throws {
        var table = Table()
        let trial = try #require(trying(&table))
        _ = table.judge(key, generation: trial.generation, .accepted, by: 1)
        guard case .old = table.refuse(key, generation: trial.generation - 1, route: 7, by: 5).refusal else {
            Issue.record("taken for the present one")
            return
        }
        #expect(table.held(key) == trial)
    }
}
