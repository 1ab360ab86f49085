// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Credentials
import Secrets

/// The credential store: its values change, it takes time, and it fails.
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

extension Simulation {
    /// Returns the present credential of that name.
    func credential(named name: String) -> Credential? {
        if let fixed = DoubleProtection.credential(named: name) { return fixed }
        for server in servers {
            if let other = server.protection.otherCredential(named: name) { return other }
        }
        guard let server = servers.first(where: { $0.protection.account.name == name }),
            let value = server.protection.account.stored
        else { return nil }
        return credential(named: name, value, of: server)
    }

    /// Returns the credential with that value.
    func credential(named name: String, _ value: String, of server: SimulatedServer) -> Credential {
        Credential(name: name, fields: server.protection.fields(of: value).mapValues { Secret($0) })
    }
}

/// Keys that are generated at once. Their signatures are not verified.
struct SimulatedSigningKeys: SigningKeys {
    private struct Key: SigningKey {
        let modulus = [UInt8](repeating: 0xC1, count: 256)
        let exponent: [UInt8] = [1, 0, 1]
        let serialized = Secret("simulated")

        func signature(for message: [UInt8]) -> [UInt8] { [UInt8](repeating: 1, count: 256) }
    }

    func generate() async throws(StateError) -> any SigningKey { Key() }

    func load(_ serialized: Secret) throws(StateError) -> any SigningKey { Key() }

    func load(pem: Secret) throws(StateError) -> any AssertionKey {
        throw StateError(reason: "simulated keys are not in PEM")
    }
}
