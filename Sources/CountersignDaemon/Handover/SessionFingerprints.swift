// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings

/// What the configuration says of each login that stands ready, as a digest: a session is handed over only to the same.
struct SessionFingerprints: Sendable {
    private var digests: [SessionKey: [UInt8]] = [:]

    /// None.
    init() {}

    /// Those of the logins of `upstreams`, which were made of `settings`. Fixed fields (`inject`) have none: they are the credential
    /// itself, and are looked up again for nothing.
    init(_ settings: Settings, _ upstreams: [UpstreamPlan], digest: (String) -> [UInt8]) {
        for plan in upstreams {
            guard let upstream = settings.upstreams.first(where: { $0.name == plan.name }) else { continue }
            for login in plan.logins.all where login.trigger.detector != nil && login.refusal == nil {
                let challenges = settings.challenges.filter { $0.name == login.name || login.asks.contains($0.name) }
                    .map(\.withoutCallers)
                let text = "\(upstream.url.origin) \(SettingsText.of(upstream.mobileFirst as Any))"
                digests[Self.place(of: login.key)] = digest("\(text) \(SettingsText.of(challenges))")
            }
        }
    }

    /// That of the login whose session `key` is, whatever its scope; `nil` where none stands ready, or none that is handed over.
    subscript(key: SessionKey) -> [UInt8]? { digests[Self.place(of: key)] }

    private static func place(of key: SessionKey) -> SessionKey {
        SessionKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}

extension ChallengeSettings {
    /// The same without who calls, where that chooses the credential: which one it is, the key of each session says.
    fileprivate var withoutCallers: ChallengeSettings {
        guard credentialsByUser != nil else { return self }
        var settings = self
        settings.credential = nil
        settings.credentialsByUser = nil
        return settings
    }
}
