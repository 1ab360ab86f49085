// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Secrets

/// What a host has for sharing sessions: the fleet's keys, and its own credentials to compare others' with.
package struct FleetMaterial: Sendable {
    let fleet: FleetDigests
    let credentials: any CredentialProvider
    let version: @Sendable (Credential) -> [UInt8]
    let now: @Sendable () -> Int64

    /// Material. `version` is the keyed digest by which this host's ledger knows a value, `now` tells milliseconds since 1970.
    package init(
        fleet: FleetDigests, credentials: any CredentialProvider, version: @escaping @Sendable (Credential) -> [UInt8],
        now: @escaping @Sendable () -> Int64
    ) {
        self.fleet = fleet
        self.credentials = credentials
        self.version = version
        self.now = now
    }

    /// A session for the other hosts, sealed; `nil` where they could not use it: its fields are made for each request or connection
    /// here, the server has not accepted it yet, or its credential has another value by now. `versions`: what it was won with, as the
    /// ledger has it.
    func sealed(
        _ session: Session, of key: SessionKey, at place: FleetPlan.Place, wonAt: Int64, versions: [String: [UInt8]]
    ) async -> [UInt8]? {
        guard session.isProven, session.signer == nil, !session.isEmpty else { return nil }
        var digests: [String: [UInt8]] = [:]
        for (name, version) in versions {
            guard let credential = try? await credentials.credential(named: name),
                self.version(credential) == version, let digest = fleet.digests(of: credential).first
            else { return nil }
            digests[name] = Array(digest.utf8)
        }
        guard
            let image = SessionImage(
                key, session, wonAt: wonAt, configuration: place.configuration, versions: digests)
        else { return nil }
        return fleet.sealing.sealed(SessionImages.encoded([image]), as: place.name)
    }

    /// What another host has sealed, as a session of this one.
    struct Opened {
        var session: Session
        var wonAt: Int64
        /// What it was won with, as this host's ledger has it.
        var versions: [String: [UInt8]]
    }

    /// The session that another host has sealed; `nil` where this one cannot use it: another key or configuration, or a credential
    /// that has another value here.
    func opened(_ bytes: [UInt8], of key: SessionKey, at place: FleetPlan.Place) async -> Opened? {
        guard let secret = fleet.sealing.opened(bytes, as: place.name),
            let image = try? SessionImages.decoded(secret).first,
            image.key == key, image.configuration == place.configuration
        else { return nil }
        var found: [String: Credential] = [:]
        var versions: [String: [UInt8]] = [:]
        for (name, digest) in image.versions {
            guard let credential = try? await credentials.credential(named: name),
                fleet.digests(of: credential).contains(where: { Array($0.utf8) == digest })
            else { return nil }
            found[name] = credential
            versions[name] = version(credential)
        }
        if let needed = image.credentialNeeded, found[needed] == nil {
            found[needed] = try? await credentials.credential(named: needed)
        }
        let session = image.session(credential: image.credentialNeeded.flatMap { found[$0] }, codec: .none)
        return session.map { Opened(session: $0, wonAt: image.wonAt, versions: versions) }
    }
}
