// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets

/// Keys that are generated at once, and whose signatures nobody verifies.
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
