// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeHandling
import TestSupport
import Testing

@testable import ChallengeClient
@testable import CountersignDaemon

@Suite("States of logins with closed latches")
struct LoginStatesTests {
    private struct NoLogin: SessionLogin {
        func logIn(_ conversation: Conversation) async throws(LoginFailure) -> Session {
            throw LoginFailure(.failed, challenge: "", detail: "")
        }
    }

    private static let origin = Origin(scheme: .https, host: "bank.example")
    private static let key = SessionKey(origin: origin, challenge: "portal", credential: "ann")

    private func latch(_ challenge: String = "portal", _ credential: String = "ann", host: String = "bank.example")
        -> ClosedLatch
    {
        let key = LatchKey(
            origin: Origin(scheme: .https, host: host), challenge: challenge, credential: credential)
        return ClosedLatch(Latch(reason: .rejected, closedAt: 0), challenge: challenge, key: key)
    }

    private func states(_ latches: [ClosedLatch]) -> [SessionState] { states([:], latches) }

    private func states(_ sessions: [SessionKey: SessionState], _ latches: [ClosedLatch]) -> [SessionState] {
        var logins = Authenticators()
        logins.add(
            Authenticator(
                name: "portal", trigger: .bearer(realm: nil), isAhead: false, key: Self.key, credentials: ["ann"],
                makeLogin: { _ in NoLogin() }))
        let plan = UpstreamPlan(name: "bank", base: WebURL(origin: Self.origin, path: "/"), logins: logins)
        return LoginStates(of: ReportedLogins([plan, plan]).all, latches: latches) { key in
            sessions.filter { key.isSibling(of: $0.key) }.map { ($0.key, $0.value) }
        }.all.map(\.sessionState)
    }

    private func isLatched(_ state: SessionState?) -> Bool { state?.failure?.code == .latched }

    @Test("a login without a session fails by its closed latch, also while its next attempt runs")
    func latched() {
        #expect(states([]) == [.cold])
        #expect(isLatched(states([latch()]).first))
        let running = states([Self.key: .loggingIn(waiters: 2)], [latch()]).first
        guard case .loggingIn(2, _)? = running else {
            Issue.record("\(String(describing: running))")
            return
        }
        #expect(isLatched(running))
        let failure = LoginFailure(.noCredential, challenge: "portal", detail: "")
        #expect(states([Self.key: .failing(failure)], [latch()]) == [.failing(failure)])
    }

    @Test("a latch of another challenge, credential or server, and one beside a held session, stop no login")
    func others() {
        #expect(states([latch("other"), latch("portal", "bob"), latch(host: "other.example")]) == [.cold])
        var table = SessionTable<Int>()
        _ = table.request(Self.key, rejected: nil, waiter: 1, now: 0)
        _ = table.finish(Self.key, with: .success(Session()), now: 0, chance: 0)
        let held = table.state(of: Self.key, now: 0)
        #expect(states([Self.key: held], [latch()]) == [held])
    }

    private func plan(callers: Int) -> UpstreamPlan {
        var logins = Authenticators()
        for number in 0..<callers {
            var key = Self.key
            key.credential = "caller-\(number)"
            logins.add(
                Authenticator(
                    name: "portal", trigger: .bearer(realm: nil), isAhead: false, key: key,
                    credentials: [key.credential], makeLogin: { _ in NoLogin() }))
        }
        return UpstreamPlan(name: "bank", base: WebURL(origin: Self.origin, path: "/"), logins: logins)
    }

    @Test("the states of N callers cost N times one, also if each has a closed latch")
    func growth() {
        let isLinear = growsLinearly(from: 100) { count in
            let reported = ReportedLogins([plan(callers: count)])
            let latches = (0..<count).map { latch("portal", "caller-\($0)") }
            let states = LoginStates(of: reported.all, latches: latches) { [($0, .cold)] }.all
            #expect(states.count == count && states.allSatisfy { $0.sessionState.failure?.code == .latched })
        }
        #expect(isLinear)
    }

    @Test("only logins that fail, or that a latch may stop, are looked at between reports")
    func concerned() {
        let reported = ReportedLogins([plan(callers: 9)])
        #expect(reported.concerned(by: [], []).isEmpty)
        var key = Self.key
        (key.credential, key.scope) = ("caller-3", "pay")
        let found = reported.concerned(by: [key], [latch("portal", "caller-5"), latch("portal", "nobody")])
        #expect(found.map(\.login.key.credential) == ["caller-3", "caller-5"])
        let shared = ClosedLatch(Latch(reason: .rejected, closedAt: 0), challenge: "portal", key: nil)
        #expect(reported.concerned(by: [], [shared]).count == 9)
    }

    @Test("a latch of a value that only other nodes have stops the login of its challenge")
    func shared() {
        let shared = ClosedLatch(Latch(reason: .rejected, closedAt: 0), challenge: "portal", key: nil)
        #expect(isLatched(states([shared]).first))
    }
}
