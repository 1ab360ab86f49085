// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EngineModel
import TestSupport
import Testing

@Suite("Simulated fleets")
struct FleetSimulationTests {
    static let parts = 8

    @Test(
        "in any weather there is at most one login per generation, no known rejection is repeated, and nobody waits for ever",
        arguments: 0..<parts)
    func storms(part: Int) {
        var leased = 0, alone = 0, stale = 0, longest: Int64 = 0
        var repeats: [FleetRules.Why: Int] = [:]
        for number in 0..<(1_000 / Self.parts) {
            let seed = UInt64(part * 1_000 + number)
            var random = SplitMix(state: seed &* 7_919)
            let fleet = SimulatedFleet(seed: seed, weather: .storm(&random))
            let rules = fleet.run()
            guard rules.broken == nil else {
                Issue.record("\(rules.broken ?? "") with \(fleet.weather)")
                return
            }
            leased += fleet.report.leased
            alone += fleet.report.alone
            stale += fleet.report.stale
            longest = max(longest, fleet.report.longestWant)
            for (why, count) in rules.repeats { repeats[why, default: 0] += count }
        }
        // The weather was bad enough to tell.
        #expect(leased > 500)
        #expect(alone > 50)
        #expect(stale > 5)
        print(
            "fleet storms \(part): \(leased) logins under leases, \(alone) alone, \(stale) stale, longest want \(longest) ms, repeats \(repeats)"
        )
    }
}
