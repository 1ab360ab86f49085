// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Admin
import ChallengeHandling
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
        return LoginStates(of: [plan, plan], sessions: sessions, latches: latches).all.map(\.sessionState)
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

    @Test("a latch of a value that only other nodes have stops the login of its challenge")
    func shared() {
        let shared = ClosedLatch(Latch(reason: .rejected, closedAt: 0), challenge: "portal", key: nil)
        #expect(isLatched(states([shared]).first))
    }
}
