// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

/// Other nodes with the same credentials, as a session store reports them.
final class OtherNodes {
    private unowned let simulation: Simulation
    private var attempts = SharedAttempts(count: 0)

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Lets another node use the present one-time password, now and then. Returns false if this one may have used it.
    func useCode() -> Bool {
        guard simulation.isStormy, simulation.chance.oneIn(8) else { return false }
        let end = (simulation.now / OneTimeCodes.period + 1) * OneTimeCodes.period
        let gate = simulation.process.services.gate
        let ends = gate.read { $0.record.codes.ends }
        guard let seed = ends.keys.first, ends.values.allSatisfy({ $0 < end }) else { return false }
        attempts.count += 1
        attempts.usedCodes.use(seed, stepEnding: end)
        _ = gate.merge(attempts)
        return true
    }

    /// Tells a new process what it learns when it begins to share.
    func tell(_ process: SimulatedProcess) {
        if attempts.count > 0 { _ = process.services.gate.merge(attempts) }
    }
}
