// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling
internal import Settings

/// What each login that stands ready means by the configuration, as a digest: a session is handed over only to the same, by this
/// host to itself after a restart and by the hosts of a fleet to each other.
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
                digests[Self.place(of: login.key)] = digest(Self.text(of: login, settings, upstream))
            }
        }
    }

    /// The terms of a login, and of all challenges that it answers: those in an order of their own, not in that of the file.
    static func text(of login: Authenticator, _ settings: Settings, _ upstream: UpstreamSettings) -> String {
        var head = LoginTerms()
        head.add("countersign-login", "\(LoginTerms.version)")
        head.add("origin", "\(upstream.url.origin)")
        let client = login.isOfUpstream ? upstream.mobileFirst?.terms.text : nil
        let names = login.isOfUpstream ? login.asks : [login.name] + login.asks
        let challenges = settings.challenges.filter { names.contains($0.name) }.map { $0.terms(at: upstream).text }
        return head.text + (client ?? "") + challenges.sorted().joined()
    }

    /// That of the login whose session `key` is, whatever its scope; `nil` where none stands ready, or none that is handed over.
    subscript(key: SessionKey) -> [UInt8]? { digests[Self.place(of: key)] }

    private static func place(of key: SessionKey) -> SessionKey {
        SessionKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}
