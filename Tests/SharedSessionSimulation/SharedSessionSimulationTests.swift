// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
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
