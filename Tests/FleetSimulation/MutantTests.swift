// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EngineModel
import TestSupport
import Testing

@Suite("Fleets of hosts that do something wrong")
struct MutantTests {
    @Test("are found out", arguments: Mutant.allCases)
    func foundOut(mutant: Mutant) {
        for seed in 0..<200 as Range<UInt64> {
            var random = SplitMix(state: seed)
            let fleet = SimulatedFleet(seed: seed, weather: .storm(&random), mutant: mutant)
            if fleet.run().broken != nil { return }
        }
        Issue.record("nobody noticed")
    }
}
