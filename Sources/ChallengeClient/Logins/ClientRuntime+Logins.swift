// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

// Who starts a login: an exchange that needs its session, a session that nears its end, whoever asks after one that failed.
extension ClientRuntime {
    /// Asks for the session of a slot and starts the login where it is this exchange's turn.
    func requestSession(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient
    ) -> SessionTable<ExchangeTicket>.Decision {
        let slot = route.slots[slot]
        let decision = directory.request(slot.key, rejected: rejected, waiter: ticket, now: wallClock())
        if decision == .lead { startLogin(slot, at: client.plan, isRenewal: false) }
        return decision
    }

    /// Has the session of a slot won for whoever comes next; the exchange that met the challenge does not wait for it.
    func winUnawaited(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient
    ) {
        _ = requestSession(route, slot: slot, rejected: rejected, ticket: ticket, of: client)
        directory.leave(route.slots[slot].key, waiter: ticket)
    }

    /// Starts the renewals that are due on a route whose sessions still serve.
    func renew(_ route: RouteSessions, of client: UpstreamClient, now: Int64) {
        // Looked at again in a second, whoever does it.
        route.postponeRenewal(until: now + 1_000)
        for slot in route.slots {
            guard let due = directory.held(slot.key)?.renewAt, now >= due, directory.beginRenewal(slot.key, now: now)
            else { continue }
            startLogin(slot, at: client.plan, isRenewal: true)
        }
    }

    /// Tries the logins of `plan` again that have failed a while ago. What was rejected is not sent again: its latch is
    /// closed until the value changes.
    func recover(_ plan: UpstreamPlan) {
        for login in plan.logins.all {
            let slot = RouteSessions.Slot(login: login, scope: login.defaultScope)
            for key in directory.failing(like: slot.key) where directory.beginRecovery(key, now: wallClock()) {
                startLogin(.init(login: login, scope: Scope(text: key.scope)), at: plan, isRenewal: false)
            }
        }
    }

    /// Runs the login on this loop, apart from the exchange that led to it: others may wait for it when that is gone.
    private func startLogin(_ slot: RouteSessions.Slot, at plan: UpstreamPlan, isRenewal: Bool) {
        let sideRequests = LoopSideRequests(runtime: self, plan: plan)
        let login = slot.login.login(scope: slot.scope)
        let services = services
        let key = slot.key
        services.observer.loginBegan(key, isRenewal: isRenewal)
        Task(executorPreference: loop) {
            let (result, duration) = await services.run(login, for: key, sideRequests: sideRequests)
            services.observer.loginEnded(key, result, after: duration)
            services.tell(services.directory.finish(key, with: result, now: services.wallClock()))
        }
    }
}
