// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets
internal import SettingsReading

/// Role that is assumed for a temporary key (`assume-role`), at the Security Token Service.
package struct AWSRole: Sendable, Equatable {
    /// Proof with which the role is assumed.
    package enum Proof: String, Sendable, CaseIterable {
        /// A request that the credential's access key signs (`AssumeRole`).
        case accessKey = "access-key"
        /// A token of another issuer, in the field `token` (`AssumeRoleWithWebIdentity`).
        case webIdentity = "web-identity"
    }

    /// Address of the service.
    package var url: WebURL
    /// Name of the role: `arn:aws:iam::123456789012:role/reader`.
    package var name: String
    /// Proof.
    package var proof: Proof
    /// Name of the session in the records of AWS.
    package var session: String
    /// Lifetime of the key; nil: the role's default, an hour.
    package var lifetime: Duration?

    private enum Keys {
        static let url = Key(required: "url", .addressWithoutQuery, "Address of the Security Token Service.")
        static let role = Key(required: "role", .word, "Name of the role (ARN).")
        static let proof = Key<Proof>(
            "with", .choice, default: .webIdentity,
            "Proof of the role: the credential's `token`, or a request signed by its access key.")
        static let session = Key(
            "session-name", .sessionName, default: "countersign", "Name of the session in the records of AWS.")
        static let lifetime = Key(
            "duration", .duration(in: .seconds(900)...(.seconds(43_200))), without: "the role's, an hour",
            "Lifetime of the temporary key; a new one is obtained before its end.")
    }

    /// Table of `challenges.sign.aws.assume-role`.
    static let section = KeySection(
        "challenges.sign.aws.assume-role", [Keys.url, Keys.role, Keys.proof, Keys.session, Keys.lifetime])

    /// Reads the role.
    static func read(_ fields: Fields) -> AWSRole? {
        let (url, role, proof) = (fields[Keys.url], fields[Keys.role], fields[Keys.proof])
        let (session, lifetime) = (fields[Keys.session], fields[Keys.lifetime])
        guard let url, let role else { return nil }
        return AWSRole(url: url, name: role, proof: proof, session: session, lifetime: lifetime)
    }
}

extension ValueForm where Content == String {
    /// A name that the service takes for a session.
    fileprivate static let sessionName = ValueForm("text", write: { .scalar($0) }) { value in
        guard let text = value.word() else { return nil }
        guard (2...64).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0.isAlphanumeric || "_=,.@-".utf8.contains($0) })
        else {
            value.report("is not 2 to 64 letters, digits and characters of _=,.@-")
            return nil
        }
        return text
    }
}
