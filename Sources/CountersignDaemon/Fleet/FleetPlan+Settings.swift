// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Credentials
internal import Settings

extension FleetPlan {
    /// The logins of `upstreams`, which were made of `settings`, whose sessions other hosts can use: not those that are made anew for
    /// each request or connection (Basic, Digest, Negotiate, NTLM, fixed fields), which cost no login.
    init(_ settings: Settings, _ upstreams: [UpstreamPlan]) {
        // The same on all hosts, so under no host's key. It tells an engine's owner which of his guesses of a configuration is right.
        let fingerprints = SessionFingerprints(upstreams) {
            CryptoDigests().digest(.sha256, of: Array($0.utf8))
        }
        let logins = upstreams.flatMap(\.logins.all)
        let alone = Set(logins.filter { !$0.isShareable }.map(\.key.challenge))
        self.init(
            keys: logins.filter { $0.refusal == nil }.map(\.key),
            findPlace: { key in
                guard !alone.contains(key.challenge), let fingerprint = fingerprints[key] else { return nil }
                let text = "countersign session 1\0\(key.origin)\0\(key.challenge)\0\(key.credential)\0\(key.scope)\0"
                let digest = CryptoDigests().digest(.sha256, of: Array(text.utf8) + fingerprint)
                return Place(name: Base64.encode(digest, .url), configuration: fingerprint)
            })
    }
}
