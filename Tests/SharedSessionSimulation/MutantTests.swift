// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import SessionStoreModel
import TestSupport
import Testing

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
