// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// Basic authentication (RFC 7617).
public struct BasicScheme: AuthenticationScheme {
    /// The scheme.
    public init() {}

    /// `basic`.
    public var name: String { "basic" }
    /// The answer is always the same.
    public var needsNoChallenge: Bool { true }

    /// A challenge after which the same can only be sent again.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        let isOffered = challenges.contains { challenge in
            challenge.isScheme("Basic") && challenge.token68 == nil && (realm == nil || challenge["realm"] == realm)
        }
        return isOffered ? .refused : nil
    }

    /// A session of one constant field.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        let use = try occasion.requireUse()
        let field = try Self.field(of: use.credential, challenge: occasion.name)
        return .session(Session(unproven: use, fields: [field]))
    }

    /// The field for the name and the password of `credential`.
    static func field(of credential: Credential, challenge: String) throws(LoginFailure) -> InjectedField {
        try field(
            for: NameAndPassword(credential, challenge: challenge), credential: credential.name, challenge: challenge)
    }

    /// `Authorization: Basic …` for `pair`, in UTF-8 whether or not the challenge says `charset`: without it a server
    /// leaves the coding to us (RFC 7617 §2.1). Throws `no-credential` for a user's name with a colon, which would end
    /// the name.
    public static func field(
        for pair: NameAndPassword, credential: String, challenge: String
    ) throws(LoginFailure) -> InjectedField {
        let hasColon = pair.username.withBytes { bytes in
            for index in bytes.indices where bytes[index] == UInt8(ascii: ":") { return true }
            return false
        }
        guard !hasColon else {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "The field \"username\" of the credential \"\(credential)\" holds a colon, which Basic cannot "
                    + "carry: what follows it would be taken for the password.")
        }
        let joined = Secret.joining([pair.username, Secret(":"), pair.password])
        return InjectedField(name: .authorization, value: .joining([Secret("Basic "), joined.base64()]))
    }
}

extension SchemeKind {
    /// `basic`.
    package static let basic = SchemeKind(rawValue: "basic") { _, _, _ in BasicScheme() }
}
