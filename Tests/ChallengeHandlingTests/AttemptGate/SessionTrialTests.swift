// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("Trials of a value that no server has accepted")
struct SessionTrialTests {
    private typealias Table = SessionTable<Int>

    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "corp", credential: "ann")

    private func session(_ password: String = "1234") -> Session {
        let credential = Credential(name: "ann", fields: ["password": Secret(password)])
        let latch = LatchKey(origin: key.origin, challenge: "corp", credential: "ann")
        return Session(unverified: CredentialUse(key: latch, credential: credential))
    }

    /// Has requests at these addresses wait, numbered from 1; the first of them tries a new session.
    private func trying(_ table: inout Table, _ addresses: [String], now: Int64 = 0) throws -> HeldSession {
        for (index, address) in addresses.enumerated() {
            _ = table.request(key, rejected: nil, waiter: index + 1, address: address, now: now)
        }
        let told = table.finish(key, with: .success(session()), now: now, chance: 0)
        #expect(told.map(\.waiter) == [1])
        guard case .verify(_, let held)? = told.first?.outcome else { throw LoginFailure.none }
        return held
    }

    private func end(
        _ table: inout Table, _ held: HeldSession, by waiter: Int, _ trial: UnansweredTrial = .lost, now: Int64
    ) -> [(waiter: Int, outcome: Table.Outcome)] {
        table.recordVerification(
            of: key, generation: held.generation, .unanswered(trial), by: waiter, now: now, chance: 0)
    }

    @Test("one without an answer is its request's own failure, and the next waiter tries: four in a minute")
    func four() throws {
        var table = Table()
        let held = try trying(&table, (1...6).map { "/\($0)" })
        for waiter in 1...3 {
            let told = end(&table, held, by: waiter, now: Int64(waiter) * 1_000)
            #expect(told.map(\.waiter) == [waiter + 1] && told.first?.outcome == .verify(key, held))
        }
        let told = end(&table, held, by: 4, .status(503), now: 4_000)
        #expect(told.map(\.waiter) == [5, 6])
        guard case .failed(let failure)? = told.first?.outcome else { throw LoginFailure.none }
        #expect(failure.isUnknown && failure.retryAt == 61_000 && failure.detail.contains("503"))
        #expect(table.state(of: key, now: 4_000) == .failing(failure))
        #expect(table.request(key, rejected: nil, waiter: 7, address: "/7", now: 60_999) == .refuse(failure))
        #expect(table.request(key, rejected: nil, waiter: 8, address: "/8", now: 61_000) == .logIn)
    }

    @Test("a page that always fails uses up two trials, and then waits alone")
    func oneAddress() throws {
        var table = Table()
        let held = try trying(&table, ["/busy"])
        #expect(end(&table, held, by: 1, .status(503), now: 0).isEmpty)
        #expect(table.request(key, rejected: nil, waiter: 2, address: "/busy", now: 5) == .verify(held))
        #expect(end(&table, held, by: 2, .status(503), now: 5).isEmpty)
        for waiter in 3...9 {
            guard
                case .refuse(let failure) = table.request(
                    key, rejected: nil, waiter: waiter, address: "/busy", now: 10)
            else { throw LoginFailure.none }
            #expect(failure.isUnknown && failure.retryAt == 60_000)
        }
        #expect(table.request(key, rejected: nil, waiter: 10, address: "/up", now: 10) == .verify(held))
        _ = table.recordVerification(of: key, generation: held.generation, .accepted, by: 10, now: 10, chance: 0)
        #expect(table.request(key, rejected: nil, waiter: 11, address: "/busy", now: 11) == .use(held))
    }

    @Test("of the waiters, one at another address tries next, and the last at a failing address fails")
    func otherAddress() throws {
        var table = Table()
        let held = try trying(&table, ["/busy", "/busy", "/up", "/busy"])
        #expect(end(&table, held, by: 1, now: 0).map(\.waiter) == [3])
        #expect(end(&table, held, by: 3, now: 0).map(\.waiter) == [2])
        let told = end(&table, held, by: 2, now: 0)
        guard told.map(\.waiter) == [4], case .failed(let failure)? = told.first?.outcome else {
            throw LoginFailure.none
        }
        #expect(failure.retryAt == 60_000)
    }

    @Test("while one gets no answer for 2 s another tries, two at once, and the first answer decides")
    func silent() throws {
        var table = Table()
        let held = try trying(&table, ["/slow", "/slow", "/up", "/more"])
        func silence(_ waiter: Int) -> [Int] {
            table.recordSilence(of: key, generation: held.generation, by: waiter, now: 2_000).map(\.waiter)
        }
        #expect(silence(2) == [] && silence(1) == [3] && silence(1) == [])
        #expect(table.request(key, rejected: nil, waiter: 5, address: "/else", now: 2_000) == .wait)
        #expect(silence(3) == [])
        let told = table.recordVerification(
            of: key, generation: held.generation, .accepted, by: 3, now: 2_500, chance: 0)
        #expect(told.map(\.waiter) == [2, 4, 5])
        #expect(end(&table, held, by: 1, now: 60_000).isEmpty)
        #expect(table.held(key) == held)
    }

    @Test("a refusal decides while another trial has no answer yet")
    func refused() throws {
        var table = Table()
        let held = try trying(&table, ["/slow", "/up"])
        _ = table.recordSilence(of: key, generation: held.generation, by: 1, now: 2_000)
        #expect(
            table.requestConfirmation(of: key, generation: held.generation, waiter: 2, now: 3_000) == .confirm(held))
        let late = table.recordVerification(
            of: key, generation: held.generation, .accepted, by: 1, now: 3_100, chance: 0)
        #expect(late.isEmpty && table.held(key) == nil)
    }

    @Test("another value, an operator's drop and `unlatch` begin anew", arguments: 0..<3)
    func forgotten(way: Int) throws {
        var table = Table()
        let held = try trying(&table, ["/busy"])
        _ = end(&table, held, by: 1, now: 0)
        _ = table.request(key, rejected: nil, waiter: 2, address: "/busy", now: 0)
        _ = end(&table, held, by: 2, now: 0)
        switch way {
        case 0: _ = table.drop { _ in true }
        case 1: table.forgetFailures(of: "corp")
        default:
            #expect(table.beginRenewal(key, now: 1) == true)
            _ = table.finish(key, with: .success(session("other")), now: 1, chance: 0)
        }
        switch table.request(key, rejected: nil, waiter: 3, address: "/busy", now: 1) {
        case .logIn, .verify: break
        default: Issue.record("still refused")
        }
    }
}

@Suite("Refusals of a session that no credential rides on")
struct RefusedSessionTests {
    private let key = SessionKey(
        origin: Origin(scheme: .https, host: "bank.example"), challenge: "api", credential: "api")
    private var table = SessionTable<Int>()
    private let held: HeldSession

    init() throws {
        _ = table.request(key, rejected: nil, waiter: 0, now: 0)
        _ = table.finish(key, with: .success(Self.session), now: 0, chance: 0)
        held = try #require(table.held(key))
    }

    private static let session = Session(fields: [InjectedField(name: .authorization, value: Secret("Bearer t"))])

    private mutating func answer(
        _ now: Int64, at path: String = "/no", isRead: Bool = true, sentAt: UInt64 = 5
    ) -> RefusalAnswer {
        table.answerRefusal(
            key, generation: held.generation, at: path, isRead: isRead, sentAt: sentAt, now: now)
    }

    @Test("one younger than 30 s is not renewed because of a path that never accepted it, and an older one is")
    mutating func young() {
        #expect(answer(0) == .pass)
        #expect(answer(29_999) == .pass)
        #expect(answer(30_000) == .renew)
        // A clock that was set back must not keep it for ever.
        #expect(answer(-1) == .renew)
    }

    @Test("one that works elsewhere is confirmed there")
    mutating func elsewhere() {
        #expect(held.acceptance.remember("/yes", isSafe: true))
        held.acceptance.accepted(sentAt: 4)
        #expect(answer(100_000) == .renew)
        held.acceptance.accepted(sentAt: 6)
        #expect(answer(100_000) == .confirm)
        #expect(answer(1) == .confirm)
        #expect(answer(1, at: "/yes", isRead: false) == .confirm)
    }

    @Test("a new one that another proxy sends has ended if it is refused here, where no answer was seen")
    mutating func handedOut() {
        held.acceptance.isHandedOut()
        #expect(answer(1) == .renew)
    }

    @Test("a new one that its own path refuses again has ended, three times in half a minute")
    mutating func toggling() throws {
        var generations: [UInt64] = []
        for number in 0..<5 {
            let now = Int64(number)
            let held = try #require(table.held(key))
            _ = held.acceptance.remember("/yes", isSafe: true)
            for _ in 0..<2 {
                let answer = table.answerRefusal(
                    key, generation: held.generation, at: "/yes", isRead: true, sentAt: 5, now: now)
                #expect(answer == (number < 3 ? .renew : .pass))
            }
            generations.append(held.generation)
            _ = table.request(key, rejected: held.generation, waiter: 1, now: now)
            _ = table.finish(key, with: .success(Self.session), now: now, chance: 0)
        }
        #expect(Set(generations).count == 5)
    }

    @Test("one of another generation, or that sends a credential, is not spared")
    mutating func others() {
        #expect(
            table.answerRefusal(key, generation: held.generation + 1, at: "/no", isRead: true, sentAt: 5, now: 1)
                == .renew)
        let latch = LatchKey(origin: key.origin, challenge: "api", credential: "api")
        var session = Session(
            unverified: CredentialUse(key: latch, credential: Credential(name: "api", fields: [:])),
            fields: Self.session.fields)
        session.isVerified = true
        #expect(table.request(key, rejected: held.generation, waiter: 1, now: 1) == .logIn)
        _ = table.finish(key, with: .success(session), now: 1, chance: 0)
        #expect(
            table.answerRefusal(key, generation: held.generation + 1, at: "/no", isRead: true, sentAt: 5, now: 1)
                == .renew)
    }
}

extension LoginFailure {
    /// Failure that ends a test.
    fileprivate static let none = LoginFailure(.failed, challenge: "", detail: "another outcome was expected")
}
