// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling

/// A manual login with a credential at the same time, by a process that has the same state directory.
struct OtherProcess {
    private let simulation: Simulation

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// Has the credential of a server refused in that process, now and then, just after the daemon looked it up.
    func tryCredential(of server: SimulatedServer) {
        let protection = server.protection
        let account = protection.account
        guard protection.isTriedByHand, protection.challengeName == account.name, let value = account.stored,
            value != account.right,
            // The process that tries a value knows which value was rejected, and for which nodes.
            simulation.setting.nodes == 1, simulation.isStormy, simulation.chance.oneIn(3)
        else { return }
        account.refuses(value, isSeen: false)
        let origin = Origin(scheme: .http, host: protection.host, port: UInt16(server.port))
        let key = LatchKey(origin: origin, challenge: protection.challengeName, credential: account.name)
        simulation.disk.closeElsewhere(
            key, simulation.disk.digest(of: simulation.credential(named: account.name, value, of: server)))
    }
}

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

    /// Reports to a new process what it learns when it begins to share.
    func tell(_ process: SimulatedProcess) {
        if attempts.count > 0 { _ = process.services.gate.merge(attempts) }
    }
}
