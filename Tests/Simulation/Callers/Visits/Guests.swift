// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc

/// A client besides the ordinary callers, with connections of its own.
protocol Guest: AnyObject {
    /// True if no answer is awaited.
    var isIdle: Bool { get }
    /// Does one thing: comes, asks, receives, or leaves.
    func act()
    /// Closes all connections.
    func disconnect()
}

/// The choice of the guests of a run.
enum Guests {
    /// Returns visitors of each kind, and a crowd if there are few slots.
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

/// A guest who makes one visit after the other, each on a connection of its own.
final class Visitor: Guest {
    private unowned let simulation: Simulation
    private let visits: [Visit]
    private var visit: Visit?
    private var descriptor: Int32 = -1
    private var input: [UInt8] = []
    private var hasEnded = false

    init(in simulation: Simulation, _ visits: [Visit]) {
        self.simulation = simulation
        self.visits = visits
    }

    var isIdle: Bool { visit == nil }

    func act() {
        guard let visit else {
            if simulation.isOpen { begin() }
            return
        }
        receive(for: visit)
    }

    private func begin() {
        let next = simulation.chance.pick(visits)
        guard let connected = simulation.process.connect(to: next.listener) else { return }
        descriptor = connected
        visit = next
        _ = CallerSocket.send(Array(next.request.utf8), on: connected)
    }

    private func receive(for visit: Visit) {
        // All that is there: how long an answer of the admin listener is does not follow from the seed.
        while !hasEnded, let bytes = CallerSocket.receive(from: descriptor) {
            input += bytes
            hasEnded = bytes.isEmpty
        }
        if SecretWatch.holdsSecret(input) {
            simulation.violated("\(visit.name): a secret reaches a caller: \(SecretWatch.lineWithSecret(input))")
        }
        if String(decoding: input.prefix(12), as: UTF8.self) == "HTTP/1.1 101" { return end() }
        let method = String(visit.request.prefix { $0 != " " })
        if let answer = CallerAnswer(input, to: method, isAtEnd: hasEnded), answer.isWhole || hasEnded {
            judge(answer, to: visit)
            end()
        } else if hasEnded {
            judge(nil, to: visit)
            end()
        }
    }

    private func judge(_ answer: CallerAnswer?, to visit: Visit) {
        guard let answer else {
            if simulation.mayRefuse { return }
            return simulation.violated("no answer to \(visit.name)")
        }
        if ["draining", "overloaded"].contains(answer.code), simulation.mayRefuse { return }
        simulation.rules.visited(answer.status)
        if let fault = visit.fault(answer) { simulation.violated("\(visit.name): \(fault)") }
    }

    private func end() {
        visit = nil
        disconnect()
    }

    func disconnect() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        (input, hasEnded) = ([], false)
    }
}
