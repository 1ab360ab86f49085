// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Curl
import HTTPTypes
import HTTPWire
import Secrets
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Sessions that an exchange is the first to try")
struct ExchangeTrialTests {
    private let login = HeldLogin()
    private let corp = NamedDetector(name: "corp")

    @Test("two unverified sessions of one request are tried together, and each gets a verdict")
    func twoUnverified() throws {
        let (first, second) = (HeldLogin(), HeldLogin())
        let rig = try ExchangeRig(logins: [
            first.authenticator("first", detector: NamedDetector(name: "first")),
            second.authenticator("second", detector: NamedDetector(name: "second")),
        ])
        rig.post("12")
        first.end(.success(.named("first", isUnverified: true)))
        rig.settle()
        second.end(.success(.named("second", isUnverified: true)))
        rig.settle()
        #expect(rig.sendings == 1)
        #expect(rig.stream?.head.contains("X-first: first\r\nX-second: second\r\n") == true)
        rig.stream?.answerWhole("200 OK")
        rig.settle()
        #expect(rig.caller.takeEvents() == ["head 200", "ended"])
        #expect(rig.services.gate.held(rig.key("first")) != nil)
        #expect(rig.services.gate.held(rig.key("second")) != nil)
        #expect(first.count == 1)
        #expect(second.count == 1)
    }

    @Test(
        "a credential that was sent and not answered is tried once more at that address, and then not for a minute",
        arguments: [true, false])
    func unanswered(isLost: Bool) throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.streams.prepare = { $0.isStale = true }
        rig.begin(ExchangeRequest(method: .put, framing: .none))
        login.end(.success(.named("corp", isUnverified: true)))
        rig.settle()
        for sendings in 1...2 {
            if sendings == 2 { rig.begin(ExchangeRequest(method: .put, framing: .none)) }
            #expect(rig.sendings == sendings)
            if isLost { rig.stream?.end(.receiveError) } else { rig.exchange.cancel() }
            rig.settle()
            #expect(rig.sendings == sendings)
        }
        for _ in 0..<3 {
            rig.begin(ExchangeRequest(method: .put, framing: .none))
            guard case .login(let failure)? = rig.caller.error?.kind else {
                Issue.record("\(String(describing: rig.caller.error))")
                return
            }
            #expect(failure.isUnknown && failure.retryAt != nil)
        }
        #expect(rig.sendings == 2)
        #expect(login.count == 1)
    }

    @Test("a credential that could not be sent is tried by the next request")
    func undecided() throws {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp)])
        rig.streams.prepare = { $0.isUnreachable = true }
        rig.post("12")
        login.end(.success(.named("corp", isUnverified: true)))
        rig.settle()
        rig.exchange.cancel()
        rig.streams.prepare = { _ in }
        #expect(rig.services.gate.held(rig.key("corp")) == nil)
        rig.post("34")
        #expect(rig.stream?.body == "34")
        rig.stream?.answerWhole("204 No Content")
        rig.settle()
        #expect(rig.services.gate.held(rig.key("corp")) != nil)
        #expect(login.count == 1)
    }

    @Test("a credential that was found to be tried, is refused, and has another value by now leads to a login")
    func replaced() throws {
        let login = HeldLogin(confirmation: .over)
        let versions = CredentialVersions { $0["password"]?.revealBytes() ?? [] }
        let rig = try ExchangeRig(
            logins: [login.authenticator("corp", detector: corp, confirms: true)], versions: versions)
        // Another exchange has not sent it.
        let (gate, key, other) = (rig.services.gate, rig.key("corp"), rig.runtime.nextTicket())
        _ = gate.change { $0.requestSession(key, rejected: nil, waiter: other, now: ExchangeRig.now) }
        let outcomes = gate.finish(key, with: .success(.named("corp", isUnverified: true)))
        guard case .verify(_, let session)? = outcomes.first?.outcome else {
            Issue.record("\(outcomes)")
            return
        }
        let generation = session.generation
        _ = gate.change {
            $0.sessions.recordVerification(
                of: key, generation: generation, .undecided, by: other, now: ExchangeRig.now, chance: 0)
        }
        let credential = Credential(name: "corp", fields: ["password": Secret("new")])
        versions.recordLookup(of: "corp", as: credential, number: versions.beginLookup())
        rig.begin(ExchangeRequest(method: .put, framing: .none))
        #expect(rig.stream?.head.contains("X-corp: corp") == true)
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        #expect(login.count == 1)
        #expect(rig.caller.takeEvents() == [])
    }
}

@Suite("Requests that wait for a login which finds no challenge")
struct LoginWithoutChallengeTests {
    private let login = HeldLogin()
    private let corp = NamedDetector(name: "corp")

    /// Failure of a login that found no challenge.
    private var nothing: LoginFailure {
        var failure = LoginFailure(.failed, challenge: "corp", detail: "No login page was found.", isCancelled: true)
        failure.lacksChallenge = true
        return failure
    }

    /// Returns a rig in which another exchange's login is in progress.
    private func rig(isAhead: Bool) throws -> ExchangeRig {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, isAhead: isAhead)])
        let (key, other) = (rig.key("corp"), rig.runtime.nextTicket())
        _ = rig.services.gate.change { $0.requestSession(key, rejected: nil, waiter: other, now: ExchangeRig.now) }
        return rig
    }

    /// Ends the other exchange's login, and then the one that the request starts.
    private func expectOwnLogin(_ rig: ExchangeRig) {
        #expect(login.count == 0)
        rig.services.notify(rig.services.gate.finish(rig.key("corp"), with: .failure(nothing)))
        rig.settle()
        #expect(login.count == 1 && rig.caller.error == nil)
        // Its own login found no challenge either, so the request fails.
        login.end(.failure(nothing))
        rig.settle()
        #expect(login.count == 1 && rig.caller.error == ExchangeError(nothing))
    }

    @Test("a request that has met a challenge leads to a login of its own")
    func challenged() throws {
        let rig = try rig(isAhead: false)
        rig.get()
        rig.stream?.answerWhole("401 Unauthorized", "X-Login: corp", body: "no")
        rig.settle()
        expectOwnLogin(rig)
    }

    @Test("a POST that waits before it is sent leads to a login for its own address")
    func unsent() throws {
        let rig = try rig(isAhead: true)
        rig.post("12")
        #expect(rig.sendings == 0)
        expectOwnLogin(rig)
    }
}
