// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Curl
package import EventLoop

/// The client on one worker: its loop, its libcurl, the exchanges there that wait for a login.
package final class ClientRuntime {
    /// The loop.
    package let loop: EventLoop
    /// libcurl on that loop.
    package let driver: CurlDriver
    /// The worker's number.
    package let worker: Int
    let services: ClientServices
    private var lastExchange: UInt64 = 0
    private var waiting: [UInt64: Exchange] = [:]

    /// A runtime on `loop`, made on its thread; throws when libcurl is out of memory.
    package init(loop: EventLoop, worker: Int, services: ClientServices, connections: Int) throws(CurlError) {
        self.loop = loop
        self.worker = worker
        self.services = services
        driver = try CurlDriver(loop: loop, connections: connections)
        services.roster.enlist(self)
    }

    var directory: SessionDirectory { services.directory }

    /// Milliseconds since 1970.
    func wallClock() -> Int64 { services.wallClock() }

    func nextTicket() -> ExchangeTicket {
        lastExchange += 1
        return ExchangeTicket(worker: worker, exchange: lastExchange)
    }

    // MARK: Waiting

    func wait(_ exchange: Exchange, ticket: ExchangeTicket) { waiting[ticket.exchange] = exchange }

    func stopWaiting(_ ticket: ExchangeTicket, for key: SessionKey) {
        guard waiting.removeValue(forKey: ticket.exchange) != nil else { return }
        directory.leave(key, waiter: ticket)
    }

    func tell(_ outcomes: SessionDirectory.Outcomes) {
        for (ticket, outcome) in outcomes {
            waiting.removeValue(forKey: ticket.exchange)?.loginEnded(outcome)
        }
    }

    // MARK: Logins

    /// Asks for the session of a slot and starts the login where it is this exchange's turn.
    func requestSession(
        _ route: RouteSessions, slot: Int, rejected: UInt64?, ticket: ExchangeTicket, of client: UpstreamClient
    ) -> SessionTable<ExchangeTicket>.Decision {
        let slot = route.slots[slot]
        let decision = directory.request(slot.key, rejected: rejected, waiter: ticket, now: wallClock())
        if decision == .lead { startLogin(slot, at: client.plan, isRenewal: false) }
        return decision
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

extension ClientServices {
    /// Runs `login` once, with its own steps told to the observer. How long it took is told besides.
    package func run(
        _ login: any SessionLogin, for key: SessionKey, sideRequests: any SideRequests
    ) async -> (Result<Session, LoginFailure>, Duration) {
        let began = ContinuousClock.now
        let observer = observer
        let conversation = Conversation(
            sideRequests: sideRequests, credentials: credentials, latches: latches, state: state, now: wallClock,
            report: { observer.loginStepped(key, $0) })
        let result: Result<Session, LoginFailure>
        do throws(LoginFailure) {
            result = .success(try await login.win(conversation))
        } catch {
            result = .failure(error)
        }
        return (result, ContinuousClock.now - began)
    }
}
