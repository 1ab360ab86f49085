// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import EventLoop

/// Held sessions in doubt: one confirmation for all exchanges that met their challenge in spite of them, on whatever worker.
final class ConfirmationRunner {
    private unowned let runtime: ClientRuntime
    private let services: ClientServices
    private let loop: EventLoop

    /// The runner of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) {
        self.runtime = runtime
        services = runtime.services
        loop = runtime.loop
    }

    /// Doubts the session of a slot, and starts its confirmation if it is this exchange's turn.
    func doubt(
        _ slot: RouteSessions.Slot, generation: UInt64, ticket: ExchangeTicket, at plan: UpstreamPlan,
        challenge: ExaminedResponse?, cause: @autoclosure () -> LoginCause
    ) -> SessionTable<ExchangeTicket>.Doubt {
        let now = services.wallClock()
        let answer = services.gate.change {
            $0.sessions.doubt(slot.key, generation: generation, waiter: ticket, now: now)
        }
        if case .confirm(let held) = answer { startConfirmation(slot, held, at: plan, challenge: challenge, cause()) }
        return answer
    }

    /// Doubts the session of a login page that stands in front of another login's server. Calls `finish` once with the answer if the
    /// session is over.
    func doubt(
        _ slot: RouteSessions.Slot, generation: UInt64, at plan: UpstreamPlan, challenge: ExaminedResponse,
        cause: LoginCause, finish: @escaping (_ isOver: Bool) -> Void
    ) {
        let ticket = runtime.nextTicket()
        switch doubt(
            slot, generation: generation, ticket: ticket, at: plan, challenge: challenge, cause: cause)
        {
        case .over: finish(true)
        case .keep, .overloaded: finish(false)
        case .confirm, .wait:
            runtime.waiters.add(ticket) { [unowned self] outcome in
                switch outcome {
                case .failed, .kept: finish(false)
                case .prove, .won: finish(true)
                case .askAgain:
                    doubt(
                        slot, generation: generation, at: plan, challenge: challenge, cause: cause, finish: finish)
                }
            }
        }
    }

    /// Asks on this loop if `held` still works. This is no login, so nothing is counted, logged or audited but a rejection.
    private func startConfirmation(
        _ slot: RouteSessions.Slot, _ held: HeldSession, at plan: UpstreamPlan, challenge: ExaminedResponse?,
        _ cause: LoginCause
    ) {
        let login = slot.login.login(LoginOccasion(scope: slot.scope, challenge: challenge))
        let services = services
        let key = slot.key
        let conversation = Conversation(
            sideRequests: runtime.logins.sideRequests(for: slot.login, at: plan, cause: cause),
            credentials: services.credentials,
            attempts: services.gate, state: services.state, now: services.wallClock)
        let (deadline, limit) = (LoginDeadline(on: loop), plan.timeouts.login)
        Task(executorPreference: loop) {
            let bounded = deadline.bounding(conversation)
            var confirmation = await deadline.outcome(within: limit, late: .unknown) {
                await login.confirm(held.session, bounded)
            }
            if let use = held.session.use {
                if confirmation == .stillGood { services.observer.sessionAccepted(key) }
                // Another host or an earlier process may have seen it accepted: what this one wins next decides.
                let isOthers = held.isTakenOver && services.gate.acceptance(of: use) == nil
                if confirmation == .over, isOthers { confirmation = .unknown }
                if confirmation == .over {
                    let failure = services.close(use, for: key)
                    services.observer.loginEnded(key, .failure(failure), cause, after: .zero)
                    return services.tell(
                        services.gate.change {
                            $0.sessions.reject(
                                key, generation: held.generation, failure, now: services.wallClock())
                        })
                }
            }
            services.tell(
                services.gate.change {
                    $0.sessions.confirm(
                        key, generation: held.generation, confirmation, now: services.wallClock())
                })
        }
    }
}
