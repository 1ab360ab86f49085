// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// By what the hosts of a fleet tell each other which value of a credential they mean, without saying it.
package struct FleetDigests: Sendable {
    let sealing: any FleetSealing
    private let canonical: @Sendable (Credential) -> Secret

    /// Digests under the fleet's keys; `canonical` writes all of a credential's value in one form.
    package init(sealing: any FleetSealing, canonical: @escaping @Sendable (Credential) -> Secret) {
        self.sealing = sealing
        self.canonical = canonical
    }

    /// Those of a value, under the current key first.
    func digests(of credential: Credential) -> [String] {
        sealing.digests(of: .joining([Secret("credential 1\0"), canonical(credential)]))
    }

    /// Those of a value that was rejected for `key`, under the current key first.
    package func digests(of credential: Credential, rejectedFor key: LatchKey) -> [String] {
        let head = "latch 1\0\(key.origin)\0\(key.challenge)\0\(key.credential)\0"
        return sealing.digests(of: .joining([Secret(head), canonical(credential)]))
    }
}
