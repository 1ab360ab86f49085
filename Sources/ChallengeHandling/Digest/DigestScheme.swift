// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Digest authentication (RFC 7616).
public struct DigestScheme: AuthenticationScheme {
    private let digests: any MessageDigests

    /// Creates the scheme; `digests` computes its hashes.
    public init(digests: any MessageDigests) { self.digests = digests }

    /// `digest`.
    public var name: String { "digest" }

    /// Returns the demand of the strongest challenge that can be answered.
    public func offer(among challenges: [AuthenticationChallenge], realm: String?) -> Challenge? {
        DigestChallenge.strongest(of: challenges, realm: realm).map { $0.isStale ? .stale : .challenged() }
    }

    /// Returns a session whose fields are computed for each request.
    public func session(for occasion: SchemeOccasion) async throws(LoginFailure) -> SchemeAnswer {
        guard let challenge = DigestChallenge.strongest(of: occasion.challenges, realm: occasion.realm) else {
            return .useless("the server offers no algorithm that is known")
        }
        let use = try occasion.requireUse()
        let pair = try NameAndPassword(use.credential, challenge: occasion.name)
        occasion.report(
            "digest: \(challenge.algorithmName ?? "MD5"), realm \"\(ServerText.sentence(challenge.realm))\"", .remark)
        return .session(
            Session(
                unverified: use,
                signer: DigestSigner(challenge, at: occasion.url, for: pair, name: occasion.name, digests: digests)))
    }

    /// Restores a signer that continues with the nonce of the image.
    public func signer(
        of image: SignerImage, for credential: Credential, challenge: String
    ) -> (any RequestSigner)? {
        guard let image = DigestImage(image), let pair = try? NameAndPassword(credential, challenge: challenge) else {
            return nil
        }
        return DigestSigner(image, for: pair, name: challenge, digests: digests)
    }
}

extension SchemeKind {
    /// `digest`.
    package static let digest = SchemeKind(rawValue: "digest") { _, site, _ in
        DigestScheme(digests: site.material.digests)
    }
}
