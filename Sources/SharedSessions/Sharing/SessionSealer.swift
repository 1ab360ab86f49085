// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
package import ChallengeHandling
package import Secrets

/// Converts sessions and failures to the sealed form in which nodes share them, and back.
struct SessionSealer: Sendable {
    /// A session of another node, opened here.
    struct OpenedSession {
        var session: Session
        var establishedAt: Int64
        /// Credential values that the session was established with, as this node names them.
        var versions: [String: [UInt8]]
    }

    let digests: SharedDigests
    /// Returns the keyed digest under which this node knows a value.
    let version: @Sendable (Credential) -> [UInt8]

    /// Returns `session` sealed for the other nodes; `nil` if they could not use it.
    ///
    /// A session is unusable for others if its fields are made for each request or connection here, if no server has
    /// accepted it, or if its credential has another value by now. `versions` are the values that it was established
    /// with, from `CredentialVersions`.
    func sealed(
        _ session: Session, of key: SessionKey, as name: SharingPlan.SharedName, asking sources: PlanSources,
        establishedAt: Int64, versions: [String: [UInt8]]
    ) async -> [UInt8]? {
        guard session.isVerified, !session.isEmpty else { return nil }
        // A signer with its own state, such as Digest's, is usable in one process only.
        if let signer = session.signer {
            guard signer.image.flatMap({ SignerCodec.injectedFields.signer(of: $0, for: nil) }) != nil else {
                return nil
            }
        }
        var shared: [String: [UInt8]] = [:]
        for (credentialName, version) in versions {
            guard let credential = try? await sources.credentials.credential(named: credentialName),
                self.version(credential) == version, let digest = digests.digests(of: credential).first
            else { return nil }
            shared[credentialName] = Array(digest.utf8)
        }
        guard
            let image = SessionImage(
                key, session, establishedAt: establishedAt, configuration: name.configuration, versions: shared)
        else { return nil }
        return digests.sealing.sealed(SessionImages.encoded([image]), as: name.text)
    }

    /// Opens the session of another node; `nil` if it is unusable here.
    ///
    /// A session is unusable here if it is under another key or configuration, or if its credential has another value
    /// here.
    func opened(
        _ bytes: [UInt8], of key: SessionKey, as name: SharingPlan.SharedName, asking sources: PlanSources
    ) async -> OpenedSession? {
        guard let secret = digests.sealing.opened(bytes, as: name.text),
            let image = try? SessionImages.decoded(secret).first,
            image.key == key, image.configuration == name.configuration
        else { return nil }
        var found: [String: Credential] = [:]
        var versions: [String: [UInt8]] = [:]
        for (credentialName, digest) in image.versions {
            guard let credential = try? await sources.credentials.credential(named: credentialName),
                digests.digests(of: credential).contains(where: { Array($0.utf8) == digest })
            else { return nil }
            found[credentialName] = credential
            versions[credentialName] = version(credential)
        }
        if let needed = image.credentialNeeded, found[needed] == nil {
            found[needed] = try? await sources.credentials.credential(named: needed)
        }
        let session = image.session(credential: image.credentialNeeded.flatMap { found[$0] }, codec: .injectedFields)
        return session.map { OpenedSession(session: $0, establishedAt: image.establishedAt, versions: versions) }
    }

    /// Returns `failure` sealed for the other nodes; `nil` if sealing failed.
    func sealed(_ failure: LoginFailure, as name: SharingPlan.SharedName) -> [UInt8]? {
        digests.sealing.sealed(failure.shared, as: name.text)
    }

    /// Opens the failure of another node's login. An unreadable one becomes a failure that reports this.
    func openedFailure(_ bytes: [UInt8], of key: SessionKey, as name: SharingPlan.SharedName) -> LoginFailure {
        digests.sealing.opened(bytes, as: name.text).flatMap(LoginFailure.init(shared:))
            ?? LoginFailure(
                .failed, challenge: key.challenge,
                detail: "Another node has failed to log in, and its reason cannot be read here.")
    }
}

extension LoginFailure {
    /// The failure without the details for this node's log.
    fileprivate var shared: Secret {
        var members: [String: JSONValue] = [
            "code": .string(code.rawValue), "challenge": .string(challenge), "detail": .string(detail),
        ]
        members["retry-at"] = retryAt.map { .integer($0) }
        return Secret(JSONValue.object(members).serialized())
    }

    /// The failure that another node has shared; `nil` for anything else.
    fileprivate init?(shared: Secret) {
        guard let value = JSONValue(parsing: shared.revealBytes()),
            let code = value["code"]?.stringValue.flatMap(Code.init(rawValue:)),
            let challenge = value["challenge"]?.stringValue, let detail = value["detail"]?.stringValue
        else { return nil }
        self.init(
            code, challenge: challenge, detail: detail, retryAt: value["retry-at"]?.integerValue,
            cause: "another node has tried")
    }
}

/// Port to the keys that all nodes have in common. They seal sessions, and make digests of credentials.
package protocol SessionSealing: Sendable {
    /// Returns `value` sealed under the current key, for `name` only; `nil` if sealing failed.
    func sealed(_ value: Secret, as name: String) -> [UInt8]?
    /// Returns the value sealed for `name` under any known key; `nil` for anything else.
    func opened(_ bytes: [UInt8], as name: String) -> Secret?
    /// Returns keyed digests of `value` in hexadecimal, under the current key first, then under older ones.
    func digests(of value: Secret) -> [String]
}

/// Digests with which nodes compare values of credentials without revealing them.
package struct SharedDigests: Sendable {
    let sealing: any SessionSealing
    private let canonical: @Sendable (Credential) -> Secret

    /// Digests under the shared keys; `canonical` writes all fields of a credential in one form.
    package init(sealing: any SessionSealing, canonical: @escaping @Sendable (Credential) -> Secret) {
        self.sealing = sealing
        self.canonical = canonical
    }

    /// Returns the digests of a credential's value, under the current key first.
    func digests(of credential: Credential) -> [String] {
        sealing.digests(of: .joining([Secret("credential 1\0"), canonical(credential)]))
    }

    /// Returns the digests of a value rejected for `key`, under the current key first.
    package func digests(of credential: Credential, rejectedFor key: LatchKey) -> [String] {
        let head = "latch 1\0\(key.origin)\0\(key.challenge)\0\(key.credential)\0"
        return sealing.digests(of: .joining([Secret(head), canonical(credential)]))
    }
}
