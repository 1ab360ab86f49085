// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

/// The sessions that the last request of each order carried: the judge of rule 4 for refusals that are not about a session.
struct CarriedSessions {
    private unowned let simulation: Simulation
    /// The steps of the requests that came without a session, although the daemon had one.
    private var bare: [Int: Int] = [:]
    /// The last step in which the daemon was without a session for each challenge.
    private var cold: [String: Int] = [:]

    /// The orders whose last request carried nothing of a login.
    private var empty: Set<Int> = []

    /// The ages of the sessions.
    var ages: SessionAges

    init(_ simulation: Simulation) {
        self.simulation = simulation
        ages = SessionAges(simulation)
    }

    /// Notes that a login begins.
    mutating func isLoggingIn(_ challenge: String) { cold[challenge] = simulation.steps }

    /// Notes a request of a caller.
    mutating func note(_ request: ServerRequest, at server: SimulatedServer) {
        guard !request.isSide, let number = request.value("x-order").flatMap({ Int($0) }) else { return }
        if server.protection.isCarried(by: request) { empty.remove(number) } else { empty.insert(number) }
        guard server.protection.isScheme else { return }
        let hasSession = hasSession(at: server)
        if !hasSession { cold[server.protection.challengeName] = simulation.steps }
        bare[number] = hasSession && !server.protection.isCarried(by: request) ? simulation.steps : nil
    }

    /// Returns true if the daemon has a session at a server, for all callers.
    func hasSession(at server: SimulatedServer) -> Bool {
        let key = SessionKey(
            origin: Origin(scheme: .http, host: server.protection.host, port: UInt16(server.port)),
            challenge: server.protection.challengeName, credential: server.protection.account.name)
        return simulation.process.services.gate.read { $0.sessions.hasSession(for: key) }
    }

    /// Returns true if the last request of an order carried nothing of a login.
    func isEmpty(_ order: Order) -> Bool { empty.contains(order.number) }

    /// Returns true if the refusal of an order was one of a request without the session that the daemon had all the time, and that its
    /// server accepts.
    func isWithoutSession(_ order: Order) -> Bool {
        guard order.isForbidden, order.wasAccepted, !order.server.protection.account.wasEverWrong,
            simulation.rules.restarts == 0, simulation.lastFault == 0, let step = bare[order.number]
        else { return false }
        // A challenge that nobody can answer passes anyhow.
        guard case .usual = ResourceManner(order, in: simulation), !order.server.protection.isRefused(order)
        else {
            return false
        }
        return cold[order.server.protection.challengeName, default: 0] < step
    }
}
