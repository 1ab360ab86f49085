// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets

/// The credential store: what it has changes, it takes its time, and it fails.
final class SimulatedCredentials: CredentialProvider, @unchecked Sendable {
    private let simulation: Simulation
    private let gate: SharedAttemptGate
    private let node: Int

    init(_ simulation: Simulation, of gate: SharedAttemptGate, node: Int) {
        self.simulation = simulation
        self.gate = gate
        self.node = node
    }

    func credential(named name: String) async throws(CredentialError) -> Credential? {
        await withCheckedContinuation { done in
            simulation.happens(late: simulation.isFault(40)) { done.resume() }
        }
        if simulation.isFault(30) { throw CredentialError(reason: "simulated") }
        for server in simulation.servers where server.protection.account.name == name {
            server.protection.account.isLookedUp()
            OtherProcess(simulation).tryCredential(of: server)
        }
        var credential = simulation.credential(named: name)
        simulation.logins.lookedUp(name, at: node)
        credential?.oneTimePasswords = TimedPasswords(
            digests: CryptoDigests(), attempts: gate, now: { [simulation] in simulation.now })
        return credential
    }
}
