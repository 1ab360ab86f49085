// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import SharedSessions
import Testing

/// The numbers of `docs/scale.md`; `run` has ten thousand nodes.
@Suite("A large simulated group of nodes", .serialized)
struct ScaleTests {
    private let nodes = Int(ProcessInfo.processInfo.environment["COUNTERSIGN_NODES"] ?? "") ?? 500

    private func weather(life: Int64, duration: Int64) -> Weather {
        var weather = Weather()
        weather.nodes = nodes
        weather.duration = duration
        weather.calm = 0
        weather.life = life
        return weather
    }

    private func say(_ what: String, _ simulation: NodeSimulation) {
        let report = simulation.report
        let each = Double(report.commands * 100 / nodes) / 100
        print(
            """
            simulation \(what): \(nodes) nodes, \(report.leased) logins under leases, \(report.alone) alone; session after p50 \
            \(report.percentile(0.5)) ms, p99 \(report.percentile(0.99)) ms; sessionStore \(report.commands) commands, \(each) each, at most \
            \(report.mostPerSecond) in a second
            """)
    }

    @Test("one login serves a large group of nodes that start at once")
    func cold() {
        let simulation = NodeSimulation(seed: 1, weather: weather(life: 3_600_000, duration: 10_000))
        #expect(simulation.run().broken == nil)
        #expect(simulation.server.logins == 1)
        #expect(simulation.report.commands <= 2 * nodes)
        say("cold", simulation)
    }

    @Test("a large group of nodes waits for the lease of a node that died")
    func leaderDies() {
        let simulation = NodeSimulation(seed: 1, weather: weather(life: 3_600_000, duration: 15_000))
        simulation.after(25) { simulation.nodes.first { $0.machine.isLoggingIn }?.die() }
        #expect(simulation.run().broken == nil)
        #expect(simulation.report.leased == 2)
        say("leader killed", simulation)
    }

    @Test("a large group of nodes renews by one login, and no caller waits")
    func renewal() {
        let simulation = NodeSimulation(seed: 1, weather: weather(life: 60_000, duration: 150_000))
        #expect(simulation.run().broken == nil)
        #expect(simulation.server.logins <= 4)
        #expect(simulation.report.commands <= 10 * nodes)
        say("150 s of sessions that live for 60 s", simulation)
    }

    @Test("a large group of nodes needs no login in an outage that its session survives")
    func outage() {
        let simulation = NodeSimulation(seed: 1, weather: weather(life: 3_600_000, duration: 40_000))
        simulation.after(10_000) { simulation.sessionStore.goAway(for: 10_000, losingData: true) }
        #expect(simulation.run().broken == nil)
        #expect(simulation.server.logins == 1)
        #expect(simulation.report.failed == 0)
        say("10 s without a session store", simulation)
    }

    @Test("a large group of nodes logs in once per node in an outage that ends all sessions, and shares one again")
    func longOutage() {
        let simulation = NodeSimulation(seed: 1, weather: weather(life: 60_000, duration: 100_000))
        simulation.after(40_000) { simulation.sessionStore.goAway(for: 30_000, losingData: false) }
        #expect(simulation.run().broken == nil)
        #expect(simulation.report.alone <= nodes)
        #expect(simulation.server.logins <= nodes + 3)
        #expect(Set(simulation.nodes.map(\.machine.generation)).count <= 2)
        say("30 s without a session store in which sessions end", simulation)
    }
}
