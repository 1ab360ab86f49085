// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The judgements of credentials that are lost on their way: now and then, and sometimes each for a while.
struct LostJudgements {
    private unowned let simulation: Simulation
    /// The time until which each is lost, in ms since 1970.
    private var end: Int64 = 0

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Returns true if the next one is lost.
    mutating func losesNext() -> Bool {
        let isBeginning = simulation.now >= end
        guard simulation.isFault(isBeginning ? 12 : 1) else { return false }
        if isBeginning, simulation.chance.oneIn(3) { end = simulation.now + 20_000 }
        return true
    }
}
