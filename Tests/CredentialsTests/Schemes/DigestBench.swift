// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@testable import Credentials

/// A signer for tests, and what its answers hold.
struct DigestBench {
    static let url = WebURL(origin: Origin(scheme: .https, host: "host.com"), path: "/dir/index.html")

    let signer: DigestSigner
    let challenge: DigestChallenge

    /// A signer that answers `field`, with `clientNonce` or one of each own.
    init(
        _ field: String, user: String = "Mufasa", password: String = "Circle of Life", clientNonce: String? = nil,
        url: WebURL = DigestBench.url
    ) throws {
        let challenges = try AuthenticationChallenge.parse([field])
        challenge = try #require(DigestChallenge.strongest(of: challenges))
        let credential = Credential(name: "corp", fields: ["username": Secret(user), "password": Secret(password)])
        let pair = try NameAndPassword(credential, challenge: "portal")
        signer = DigestSigner(
            challenge, at: url, for: pair, name: "portal", digests: CryptoDigests(),
            makeNonce: { clientNonce ?? DigestSigner.randomNonce() })
    }

    /// The value of `Authorization` for a request; `nil` where there is none.
    func written(
        _ method: String = "GET", _ target: String = "/dir/index.html", body: SigningRequest.Body = .none
    ) throws -> String? {
        try signer.sign(SigningRequest(method: method, origin: Self.url.origin, target: target, body: body)).fields
            .first?.value.revealText()
    }

    /// The digest of `body`, taken in pieces of `size` bytes.
    func digest(of body: [UInt8], in size: Int = 7) throws -> BodyReading {
        let digest = try #require(signer.bodyReader(for: "/dir/index.html"))
        var rest = body[...]
        while !rest.isEmpty {
            digest.update(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        return BodyReading(digest.form, digest.finish())
    }

    /// The same, read as the parameters of a challenge are.
    func answer(_ method: String = "GET", _ target: String = "/dir/index.html") throws -> AuthenticationChallenge {
        let field = try #require(try written(method, target))
        return try #require(try AuthenticationChallenge.parse([field]).first)
    }

    /// What a server says with an accepted answer.
    func learn(_ info: String, status: Int = 200) throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: try #require(HTTPField.Name("Authentication-Info")), value: info))
        signer.learn(status: status, fields: fields, target: "/dir/index.html")
    }
}
