// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The scheme NTLM (MS-NTHT), which authenticates connections. libcurl speaks it, where it was built with it; later ones are not.
public struct NTLMScheme: AuthenticationScheme {
    private let isSupported: Bool

    /// The scheme; `isSupported`: whether the installed libcurl has it.
    public init(isSupported: Bool) { self.isSupported = isSupported }

    /// `ntlm`.
    public var name: String { "ntlm" }

    /// Servers remember by the connection who it is.
    public var bindsConnections: Bool { true }

    /// `NTLM`, which has no realm, so that one that is meant counts for other schemes only. What a connection was refused with would be the same on the next.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        challenges.contains { $0.isScheme("NTLM") } ? .refused : nil
    }

    /// A session by the credential's fields `username` (`user` or `DOMAIN\user`) and `password`.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        guard isSupported else {
            return .useless("the installed libcurl was built without NTLM")
        }
        let use = try occasion.requireUse()
        let pair = try NameAndPassword(use.credential, challenge: occasion.name)
        var session = Session(unproven: use)
        session.connection = ConnectionCredential(username: pair.username, password: pair.password)
        return .session(session)
    }
}

extension SchemeKind {
    /// `ntlm`.
    package static let ntlm = SchemeKind(rawValue: "ntlm", authenticatesConnections: true) { _, site, _ in
        NTLMScheme(isSupported: site.material.hasNTLM)
    }
}
