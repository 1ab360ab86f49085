// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

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
        let standings = directory.standings(now: now)
        for key in keys {
            switch standings[key] ?? .cold {
            case .winning: continue
            case .cold: services.ledger?.forget(key)
            case .failing:
                directory.forgetFailures(of: key.challenge)
                services.ledger?.forget(key)
            case .held: replace(key, at: plans, now: now)
            }
        }
    }

    private func replace(_ key: SessionKey, at plans: [UpstreamPlan], now: Int64) {
        for plan in plans {
            guard let login = plan.logins.all.first(where: { $0.key.isSibling(of: key) }) else { continue }
            // Otherwise one runs already, or its last try failed a moment ago: the next look comes back to it.
            guard directory.beginRenewal(key, now: now) else { return }
            startLogin(
                RouteSessions.Slot(login: login, scope: Scope(text: key.scope)), at: plan, challenge: nil,
                LoginCause(.change))
            return
        }
        services.ledger?.forget(key)
    }
}
