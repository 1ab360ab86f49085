// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import ChallengeHandling

/// What each login that stands ready means by the configuration, as a digest: a session is handed over only to the same, by this
/// host to itself after a restart and by the hosts of a fleet to each other. Beside it stands how the login's signers are made anew.
struct SessionFingerprints: Sendable {
    private struct Login {
        var digest: [UInt8]
        var codec: SignerCodec
    }

    private var logins: [SessionKey: Login] = [:]

    /// None.
    init() {}

    /// Those of the logins of `upstreams`. Fixed fields (`inject`) have none: they are the credential itself, and are looked up again for
    /// nothing.
    init(_ upstreams: [UpstreamPlan], digest: (String) -> [UInt8]) {
        for plan in upstreams {
            for login in plan.logins.all where login.trigger.detector != nil && login.refusal == nil {
                logins[Self.place(of: login.key)] = Login(digest: digest(login.terms), codec: login.codec)
            }
        }
    }

    /// That of the login whose session `key` is, whatever its scope; `nil` where none stands ready, or none that is handed over.
    subscript(key: SessionKey) -> [UInt8]? { logins[Self.place(of: key)]?.digest }

    /// The codec of the signers of the session of `key`.
    func codec(of key: SessionKey) -> SignerCodec { logins[Self.place(of: key)]?.codec ?? .none }

    private static func place(of key: SessionKey) -> SessionKey {
        SessionKey(origin: key.origin, challenge: key.challenge, credential: key.credential)
    }
}
