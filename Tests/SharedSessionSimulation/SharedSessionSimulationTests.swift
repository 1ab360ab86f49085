// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import FoundationEssentials
import SessionStoreModel
import SharedSessions
import TestSupport
import Testing

@Suite("Simulated groups of nodes")
struct SharedSessionSimulationTests {
    static let parts = 8

    @Test(
        "under any faults there is at most one login per generation, no known rejection is repeated, and no caller waits for ever",
        arguments: 0..<parts)
    func storms(part: Int) {
        var leased = 0, alone = 0, stale = 0, longest: Int64 = 0
        var repeats: [SharingRules.Why: Int] = [:]
        for number in 0..<(1_000 / Self.parts) {
            let seed = UInt64(part * 1_000 + number)
            var random = SplitMix(state: seed &* 7_919)
            let simulation = NodeSimulation(seed: seed, weather: .storm(&random))
            let rules = simulation.run()
            guard rules.broken == nil else {
                Issue.record("\(rules.broken ?? "") with \(simulation.weather)")
                return
            }
            leased += simulation.report.leased
            alone += simulation.report.alone
            stale += simulation.report.stale
            longest = max(longest, simulation.report.longestWant)
            for (why, count) in rules.repeats { repeats[why, default: 0] += count }
        }
        // The weather was bad enough to tell.
        #expect(leased > 500)
        #expect(alone > 50)
        #expect(stale > 5)
        print(
            "simulation storms \(part): \(leased) logins under leases, \(alone) alone, \(stale) stale, longest want \(longest) ms, repeats \(repeats)"
        )
    }
}

@Suite("Groups of nodes that do something wrong")
struct MutantTests {
    @Test("a node with a fault breaks a rule of the simulation", arguments: Mutant.allCases)
    func foundOut(mutant: Mutant) {
        for seed in 0..<200 as Range<UInt64> {
            var random = SplitMix(state: seed)
            let simulation = NodeSimulation(seed: seed, weather: .storm(&random), mutant: mutant)
            if simulation.run().broken != nil { return }
        }
        Issue.record("nobody noticed")
    }
}

@Suite("A simulated group of nodes without faults")
struct FairWeatherTests {
    private func weather(nodes: Int, duration: Int64 = 20_000) -> Weather {
        var weather = Weather()
        weather.nodes = nodes
        weather.duration = duration
        weather.calm = 0
        weather.life = 600_000
        return weather
    }

    @Test("a group of nodes without a session logs in once for many requests", arguments: [3, 50])
    func cold(nodes: Int) {
        let simulation = NodeSimulation(seed: 1, weather: weather(nodes: nodes))
        for node in simulation.nodes { for _ in 0..<99 { simulation.after(0) { node.beginRequest() } } }
        #expect(simulation.run().broken == nil)
        #expect(simulation.server.logins == 1)
        #expect(simulation.report.waited.count >= nodes * 100)
        #expect(simulation.report.percentile(1) < 2_000)
    }

    @Test("a group of nodes logs in once more after the lease of a node that died", arguments: 0..<20)
    func leaderDies(seed: Int) {
        let simulation = NodeSimulation(seed: UInt64(seed), weather: weather(nodes: 3))
        simulation.after(25) { simulation.nodes.first { $0.machine.isLoggingIn }?.die() }
        #expect(simulation.run().broken == nil)
        #expect(simulation.report.leased == 2)
        #expect(simulation.report.longestWant > 4_000)
        // The lease, the spread of the waiting nodes, and a login.
        #expect(simulation.report.longestWant < 6_000 + 1_000 + 1_000)
    }

    @Test("a group of nodes repeats a rejected password only if the node that saw it died", arguments: 0..<40)
    func rejection(seed: Int) {
        var weather = weather(nodes: 8, duration: 60_000)
        weather.calm = 75_000
        weather.life = 20_000
        weather.passwords = 3
        weather.kills = 6
        let simulation = NodeSimulation(seed: UInt64(seed), weather: weather)
        let rules = simulation.run()
        #expect(rules.broken == nil)
        #expect(rules.repeats.keys.allSatisfy { $0 == .died }, "\(rules.repeats)")
        #expect(simulation.report.alone == 0)
    }

    @Test(
        "a group of nodes keeps its session without a store, and logs in once at most",
        arguments: 0..<20)
    func outage(seed: Int) {
        let simulation = NodeSimulation(seed: UInt64(seed), weather: weather(nodes: 10, duration: 60_000))
        simulation.after(20_000) { simulation.sessionStore.goAway(for: 10_000, losingData: seed % 2 == 0) }
        #expect(simulation.run().broken == nil)
        #expect(simulation.server.logins == 1)
        #expect(simulation.report.failed == 0)
    }

    @Test("a group of nodes logs in once per lifetime, and all take the renewed session")
    func renewals() {
        var weather = weather(nodes: 30, duration: 200_000)
        weather.life = 40_000
        let simulation = NodeSimulation(seed: 3, weather: weather)
        #expect(simulation.run().broken == nil)
        // Sessions are renewed when a fifth of their lifetime is left.
        #expect(simulation.server.logins >= 5 && simulation.server.logins <= 7)
        #expect(simulation.report.percentile(1) < 2_000)
        #expect(Set(simulation.nodes.map(\.machine.generation)).count == 1)
    }
}

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
