// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@testable import ChallengeClient

@Suite("Requests that wait for a login which finds no challenge")
struct LoginWithoutChallengeTests {
    private let login = HeldLogin()
    private let corp = NamedDetector(name: "corp")

    /// The end of a login that was asked for by nobody, or at an address of no use.
    private var nothing: LoginFailure {
        var failure = LoginFailure(.failed, challenge: "corp", detail: "No login page was found.", isCancelled: true)
        failure.lacksChallenge = true
        return failure
    }

    /// A rig in which somebody else's login is under way.
    private func rig(isAhead: Bool) throws -> ExchangeRig {
        let rig = try ExchangeRig(logins: [login.authenticator("corp", detector: corp, isAhead: isAhead)])
        let (key, other) = (rig.key("corp"), rig.runtime.nextTicket())
        _ = rig.services.gate.change { $0.requestSession(key, rejected: nil, waiter: other, now: ExchangeRig.now) }
        return rig
    }

    /// Ends that login, and then the one to which the request leads.
    private func expectOwnLogin(_ rig: ExchangeRig) {
        #expect(login.count == 0)
        rig.services.notify(rig.services.gate.finish(rig.key("corp"), with: .failure(nothing)))
        rig.settle()
        #expect(login.count == 1 && rig.caller.error == nil)
        // Its own login has found nothing: that is the answer.
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
