// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SessionStoreModel
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
