// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import EventLoop

/// A session that is to be ended at its server.
package struct PendingLogout: Sendable {
    let key: SessionKey
    let session: Session
    let logout: any SessionLogout
    let plan: UpstreamPlan

    /// Those of `held` that the logins of `plans` end where they are dropped, each once.
    package static func all(of held: [SessionKey: HeldSession], at plans: [UpstreamPlan]) -> [PendingLogout] {
        var pending: [PendingLogout] = []
        for (key, held) in held {
            let found = plans.lazy.compactMap { plan in
                plan.logins.all.lazy.compactMap { $0.key.isSibling(of: key) ? $0.logout : nil }.first.map { (plan, $0) }
            }.first
            guard let (plan, logout) = found else { continue }
            if logout.endsAllScopes, pending.contains(where: { $0.key.isSibling(of: key) }) { continue }
            pending.append(PendingLogout(key: key, session: held.session, logout: logout, plan: plan))
        }
        return pending
    }
}
