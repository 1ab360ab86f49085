// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Secrets
internal import System

/// Hand-over of the held sessions from one process to the next.
struct SessionHandover: Sendable {
    /// Result of restoring an image.
    struct Outcome {
        /// Number of restored sessions.
        var restored = 0
        /// Challenges of the sessions that were not restored, with the reasons.
        var refused: [(challenge: String, reason: String)] = []
    }

    /// Timeout of the lookup of the credentials of handed-over sessions.
    private static let timeout = Duration.seconds(15)
    private static let sealName = "sessions"

    let context: DaemonContext

    /// Returns the image of all held sessions, unencrypted; `nil` if no session is held.
    func image(_ fingerprints: SessionFingerprints) -> Secret? {
        let now = SystemClock.wallClock()
        let images = context.services.gate.read { $0.sessions.allHeld }.compactMap { key, held -> SessionImage? in
            guard !held.isExpired(at: now), let fingerprint = fingerprints[key] else { return nil }
            let versions = context.services.credentialVersions?.versions(of: key) ?? [:]
            return SessionImage(key, held, configuration: fingerprint, versions: versions)
        }
        guard !images.isEmpty else { return nil }
        return SessionImages.encoded(images.sorted { "\($0.key)" < "\($1.key)" })
    }

    /// Returns the image sealed, because other processes hold the memory and the kernel may swap it out.
    func sealed(_ image: Secret) -> [UInt8]? { context.state.sealed(image, as: Self.sealName) }

    /// Restores the sessions of a sealed image whose challenges and credentials are unchanged. Throws if the image cannot be opened.
    func restore(_ sealed: [UInt8], _ fingerprints: SessionFingerprints) throws -> Outcome {
        guard let image = context.state.opened(sealed, as: Self.sealName) else {
            throw CompositionError("they were sealed with another key, or are damaged")
        }
        let images = try SessionImages.decoded(image)
        let names = Set(images.flatMap { $0.versions.keys + [$0.credentialNeeded].compactMap(\.self) })
        let credentials = context.credentials(named: names, within: Self.timeout)
        var outcome = Outcome()
        for image in images {
            if let reason = adopt(image, fingerprints, credentials) {
                outcome.refused.append((image.key.challenge, reason))
            } else {
                outcome.restored += 1
            }
        }
        return outcome
    }

    /// Adopts one session. Returns the reason if the session cannot be adopted; `nil` otherwise.
    private func adopt(
        _ image: SessionImage, _ fingerprints: SessionFingerprints, _ credentials: [String: Credential]
    ) -> String? {
        guard let fingerprint = fingerprints[image.key], fingerprint == image.configuration else {
            return "the configuration of its challenge has changed"
        }
        for (name, version) in image.versions {
            guard let credential = credentials[name], context.attempts.digest(of: credential) == version else {
                return "the credential \(name) has changed or cannot be looked up"
            }
        }
        let credential = image.credentialNeeded.flatMap { credentials[$0] }
        guard let session = image.session(credential: credential, codec: fingerprints.codec(of: image.key)) else {
            return "its credential cannot be looked up or lacks a required field"
        }
        guard context.services.gate.adopt(image.key, session, establishedAt: image.establishedAt) else {
            return "it has expired, or another session is held already"
        }
        context.services.credentialVersions?.record(image.key, image.versions)
        return nil
    }
}

/// Digests of the configurations of all logins, by session.
///
/// A session is handed over only to a login with an equal fingerprint, after a restart or between nodes that share sessions. The codec that
/// recreates a login's signers is kept with its fingerprint.
struct SessionFingerprints: Sendable {
    private struct Login {
        var digest: [UInt8]
        var codec: SignerCodec
    }

    private var logins: [SessionKey: Login] = [:]

    /// No fingerprints.
    init() {}

    /// The fingerprints of the logins of `upstreams`.
    ///
    /// Fixed fields (`inject`) have no fingerprint: they are the credential itself, and looking them up again costs nothing.
    init(_ upstreams: [UpstreamPlan], digest: (String) -> [UInt8]) {
        for plan in upstreams {
            for login in plan.logins.all where login.trigger.detector != nil && login.refusal == nil {
                logins[Self.loginKey(of: login.key)] = Login(digest: digest(login.terms), codec: login.codec)
            }
        }
    }

    /// The fingerprint of the login of the session `key`, in any scope. `nil` if no login is configured or its sessions are not handed over.
    subscript(key: SessionKey) -> [UInt8]? { logins[Self.loginKey(of: key)]?.digest }

    func codec(of key: SessionKey) -> SignerCodec { logins[Self.loginKey(of: key)]?.codec ?? .none }

    private static func loginKey(of key: SessionKey) -> SessionKey {
        SessionKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}
