// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Secrets

/// Writes down what is held, for the next process, and takes up what the last one held.
struct SessionHandover: Sendable {
    /// What became of an image.
    struct Outcome {
        /// How many sessions are held now.
        var taken = 0
        /// The challenges whose sessions are not, and why not.
        var refused: [(challenge: String, reason: String)] = []
    }

    /// How long is waited for the credentials that sessions were won with.
    private static let patience = Duration.seconds(15)
    private static let sealName = "sessions"

    let world: World

    /// What is held now, in the clear; `nil` where that is nothing.
    func image(_ fingerprints: SessionFingerprints) -> Secret? {
        let now = Process.wallClock()
        let images = world.services.gate.read { $0.sessions.allHeld }.compactMap { key, held -> SessionImage? in
            guard !held.isExpired(at: now), let fingerprint = fingerprints[key] else { return nil }
            let versions = world.services.ledger?.versions(of: key) ?? [:]
            return SessionImage(key, held, configuration: fingerprint, versions: versions)
        }
        guard !images.isEmpty else { return nil }
        return SessionImages.encoded(images.sorted { "\($0.key)" < "\($1.key)" })
    }

    /// The same as it may lie in memory that others hold and the kernel swaps out.
    func sealed(_ image: Secret) -> [UInt8]? { world.state.sealed(image, as: Self.sealName) }

    /// Takes up the sessions of a sealed image whose challenges and credentials are what they were. Throws where it is none of ours.
    func takeUp(_ sealed: [UInt8], _ fingerprints: SessionFingerprints) throws -> Outcome {
        guard let image = world.state.opened(sealed, as: Self.sealName) else {
            throw CompositionError("it was sealed with another key, or is damaged")
        }
        let images = try SessionImages.decoded(image)
        let names = Set(images.flatMap { $0.versions.keys + [$0.credentialNeeded].compactMap(\.self) })
        let credentials = world.credentials(named: names, within: Self.patience)
        var outcome = Outcome()
        for image in images {
            if let reason = refusal(image, fingerprints, credentials) {
                outcome.refused.append((image.key.challenge, reason))
            } else {
                outcome.taken += 1
            }
        }
        return outcome
    }

    /// Takes up a session; why not, where not.
    private func refusal(
        _ image: SessionImage, _ fingerprints: SessionFingerprints, _ credentials: [String: Credential]
    ) -> String? {
        guard let fingerprint = fingerprints[image.key], fingerprint == image.configuration else {
            return "the configuration of its challenge has changed"
        }
        for (name, version) in image.versions {
            guard let credential = credentials[name], world.attempts.digest(of: credential) == version else {
                return "the credential \(name) has changed, or cannot be looked up"
            }
        }
        let credential = image.credentialNeeded.flatMap { credentials[$0] }
        guard let session = image.session(credential: credential, codec: fingerprints.codec(of: image.key)) else {
            return "its credential cannot be looked up, or lacks what it takes"
        }
        guard world.services.gate.adopt(image.key, session, wonAt: image.wonAt) else {
            return "it has ended"
        }
        world.services.ledger?.note(image.key, image.versions)
        return nil
    }
}
