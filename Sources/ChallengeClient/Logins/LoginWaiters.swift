// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling

/// The exchanges and the logins of one worker that wait for the end of a login.
final class LoginWaiters {
    typealias Outcome = SessionTable<ExchangeTicket>.Outcome

    private unowned let runtime: ClientRuntime
    private var exchanges: [UInt64: Exchange] = [:]
    private var logins: [UInt64: (Outcome) -> Void] = [:]

    /// Nobody waits yet on the worker of `runtime`, which outlives it.
    init(_ runtime: ClientRuntime) { self.runtime = runtime }

    /// `exchange` waits under `ticket`.
    func add(_ exchange: Exchange, _ ticket: ExchangeTicket) { exchanges[ticket.exchange] = exchange }

    /// A login waits for another one; `finish` is called once, with the outcome.
    func add(_ ticket: ExchangeTicket, _ finish: @escaping (Outcome) -> Void) { logins[ticket.exchange] = finish }

    /// The exchange of `ticket` waits no longer for the session of `key`.
    func remove(_ ticket: ExchangeTicket, for key: SessionKey) {
        guard exchanges.removeValue(forKey: ticket.exchange) != nil else { return }
        runtime.gate.change { $0.sessions.leave(key, waiter: ticket) }
    }

    /// Hands the end of a login to those of this worker.
    func tell(_ outcomes: SharedAttemptGate.Outcomes) {
        for (ticket, outcome) in outcomes {
            if let exchange = exchanges.removeValue(forKey: ticket.exchange) {
                exchange.loginEnded(outcome)
                continue
            }
            logins.removeValue(forKey: ticket.exchange)?(outcome)
            if case .prove(let key, let trial) = outcome {
                // It was given up meanwhile: another is to try.
                runtime.logins.judge(key, generation: trial.generation, .undecided, ticket: ticket)
            }
        }
    }
}
