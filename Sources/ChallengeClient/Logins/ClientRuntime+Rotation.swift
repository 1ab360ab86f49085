// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop

// Sessions whose credential has another value now.
extension WorkerRoster {
    /// Has some worker win the sessions of these keys anew, at those of `plans` that hold them; see
    /// `ClientRuntime.replaceOutdated`.
    package func replaceOutdated(_ keys: Set<SessionKey>, at plans: [UpstreamPlan]) {
        onSomeWorker { $0.replaceOutdated(keys, at: plans) }
    }
}

extension ClientRuntime {
    /// Wins the sessions of `keys` anew, with the present value of their credential; until that is done the old ones serve.
    /// Where no session is held, a pause after the old value's failure ends.
    func replaceOutdated(_ keys: Set<SessionKey>, at plans: [UpstreamPlan]) {
        let now = wallClock()
        let standings = gate.read { $0.sessions.standings(now: now) }
        for key in keys {
            switch standings[key] ?? .cold {
            case .winning: continue
            case .cold: services.ledger?.forget(key)
            case .failing:
                services.fleet?.forgetFailures()
                gate.change { $0.sessions.forgetFailures(of: key.challenge) }
                services.ledger?.forget(key)
            case .held: replace(key, at: plans, now: now)
            }
        }
    }

    private func replace(_ key: SessionKey, at plans: [UpstreamPlan], now: Int64) {
        for plan in plans {
            guard let login = plan.logins.all.first(where: { $0.key.isSibling(of: key) }) else { continue }
            // Otherwise one runs already, or its last try failed a moment ago: the next look comes back to it.
            guard gate.change({ $0.sessions.beginRenewal(key, now: now) }) else { return }
            startLogin(
                RouteSessions.Slot(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil,
                LoginCause(.change), replacing: replaced(key, login, at: plan))
            return
        }
        services.ledger?.forget(key)
    }

    /// The session that is held now, where its login ends sessions at the server. One logout for all scopes would end the new one as
    /// well: there the server's own session stays the same.
    private func replaced(_ key: SessionKey, _ login: Authenticator, at plan: UpstreamPlan) -> PendingLogout? {
        guard let logout = login.logout, !logout.endsAllScopes, let held = gate.held(key) else { return nil }
        return PendingLogout(key: key, session: held.session, logout: logout, plan: plan)
    }

    /// Ends a session that another has taken the place of, once what was sent with it has had time to be answered.
    func endLater(_ pending: PendingLogout) {
        let timer = LazyTimer(loop: loop)
        timer.onExpiry = { [unowned self] in
            // It holds itself up to here.
            timer.onExpiry = nil
            carryOut(pending) {}
        }
        timer.arm(at: loop.now + Self.grace)
    }

    private static var grace: Duration { .seconds(2) }
}
