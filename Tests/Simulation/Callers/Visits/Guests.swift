// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The choice of the guests of a run.
enum Guests {
    /// Returns visitors of each kind, and a crowd where there are few places.
    static func all(in simulation: Simulation) -> [any Guest] {
        let (servers, listeners) = (simulation.servers, simulation.setting.listeners)
        let visits = [
            AdminVisits.all(servers.map(\.protection.account.name)), Intrusion.adminVisits(),
            Intrusion.visits(listeners) + servers.flatMap(\.visits), TokenVisits.all(listeners),
        ]
        let visitors = visits.map { Visitor(in: simulation, $0) }
        guard listeners.isCrowded else { return visitors }
        // As many acts as all visitors together.
        return visitors + Array(repeating: Crowd(in: simulation), count: visitors.count)
    }
}
