// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Crypto
import CryptoExtras
import FoundationEssentials
import HTTPTypes
import Secrets
import Testing

@testable import ChallengeHandling
@testable import Credentials

/// The examples of RFC 9421, appendix B.2.
@Suite("Message signatures of RFC 9421")
struct MessageVectorTests {
    private static let digest =
        "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"

    struct Example: Sendable, CustomTestStringConvertible {
        var label: String
        var algorithm: MessageAlgorithm
        var keyID: String
        var components: [String]
        /// Values of the components.
        var values: [String] = []
        var nonce: String?
        var tag: String?
        var parameters: String
        var signature: String

        var testDescription: String { label }
        /// The signature base that the RFC prints.
        var base: String {
            let lines = zip(components, values).map { component, value in
                "\(component.hasPrefix("\"") ? component : "\"\(component)\""): \(value)"
            }
            return (lines + ["\"@signature-params\": \(parameters)"]).joined(separator: "\n")
        }
    }

    private static let examples = [
        Example(
            label: "sig-b21", algorithm: .rsaPSS, keyID: "test-key-rsa-pss", components: [],
            nonce: "b3k2pp5k7z-50gnwp.yemd",
            parameters: #"();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd""#,
            signature: """
                d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA\
                7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0m\
                KZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO\
                5Nyt8C8ssinQ98Xw9Q==
                """),
        Example(
            label: "sig-b22", algorithm: .rsaPSS, keyID: "test-key-rsa-pss",
            components: ["@authority", "content-digest", #""@query-param";name="Pet""#],
            values: ["example.com", digest, "dog"], tag: "header-example",
            parameters: """
                ("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";\
                tag="header-example"
                """,
            signature: """
                LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+EC\
                xCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7C\
                l+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQ\
                l3/XaVe4bXTugEjHSw==
                """),
        Example(
            label: "sig-b23", algorithm: .rsaPSS, keyID: "test-key-rsa-pss",
            components: [
                "date", "@method", "@path", "@query", "@authority", "content-type", "content-digest", "content-length",
            ],
            values: [
                "Tue, 20 Apr 2021 02:07:55 GMT", "POST", "/foo", "?param=Value&Pet=dog", "example.com",
                "application/json", digest, "18",
            ],
            parameters: """
                ("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length")\
                ;created=1618884473;keyid="test-key-rsa-pss"
                """,
            signature: """
                bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38\
                K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCo\
                C1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FU\
                o5fTIztsDZKEgM4cUA==
                """),
        Example(
            label: "sig-b25", algorithm: .hmac, keyID: "test-shared-secret",
            components: ["date", "@authority", "content-type"],
            values: ["Tue, 20 Apr 2021 02:07:55 GMT", "example.com", "application/json"],
            parameters: #"("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret""#,
            signature: "pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8="),
        Example(
            label: "sig-b26", algorithm: .ed25519, keyID: "test-key-ed25519",
            components: ["date", "@method", "@path", "@authority", "content-type", "content-length"],
            values: ["Tue, 20 Apr 2021 02:07:55 GMT", "POST", "/foo", "example.com", "application/json", "18"],
            parameters: """
                ("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;\
                keyid="test-key-ed25519"
                """,
            signature: "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="),
    ]

    /// Fields of the examples' request.
    private final class Fields: SigningFields {
        func forEach(_ body: (Span<UInt8>, Span<UInt8>) -> Void) {
            for (name, value) in [
                ("Host", "example.com"), ("Date", "Tue, 20 Apr 2021 02:07:55 GMT"),
                ("Content-Type", "application/json"),
                ("Content-Digest", MessageVectorTests.digest), ("Content-Length", "18"),
            ] {
                let (name, value) = (Array(name.utf8), Array(value.utf8))
                body(name.span, value.span)
            }
        }
    }

    @Test("a message signature is that of the RFC, or is verified in place of the RFC's", arguments: examples)
    func signatures(example: Example) throws {
        var components: [SignedComponent] = []
        for text in example.components { components.append(try SignedComponent(text)) }
        var settings = MessageSignature(components, example.algorithm, label: example.label)
        settings.keyID = example.keyID
        settings.plan.tag = example.tag
        settings.plan.nonce = example.nonce == nil ? .none : .random
        let credential = Self.credential(example.algorithm)
        let key = try MessageSigningKey(
            of: settings, credential, challenge: "robot", digests: CryptoDigests(), keys: CryptoMessageKeys())
        let nonce = example.nonce
        let signer = MessageSigner(
            settings.plan, agent: nil, key: key, challenge: "robot", digests: CryptoDigests(), makeNonce: { _ in nonce }
        )
        let request = SigningRequest(
            method: "POST", origin: Origin(scheme: .https, host: "example.com"), target: "/foo?param=Value&Pet=dog",
            now: 1_618_884_473_000, fields: Fields())
        let fields = try signer.sign(request).fields
        let written = fields.map { "\($0.name.canonicalName): \($0.value.revealText())" }
        #expect(written.first == "signature-input: \(example.label)=\(example.parameters)" && written.count == 2)
        let prefix = "signature: \(example.label)=:"
        let last = try #require(written.last)
        let signature = try #require(Base64.decode(last.dropFirst(prefix.count).dropLast()))
        let published = try #require(Base64.decode(example.signature))
        guard example.algorithm == .rsaPSS else { return #expect(signature == published) }
        let verifier = try Self.rsa()
        for signature in [signature, published] {
            #expect(
                verifier.isValidSignature(
                    .init(rawRepresentation: signature), for: SHA512.hash(data: Array(example.base.utf8)), padding: .PSS
                ))
        }
    }

    private static func credential(_ algorithm: MessageAlgorithm) -> Credential {
        let pem =
            switch algorithm {
            case .ecdsaP256: RFC9421Keys.p256
            case .ed25519: RFC9421Keys.ed25519
            case .hmac, .rsaPSS: RFC9421Keys.rsaPSS
            }
        let secret = Secret(Base64.decode(RFC9421Keys.secret) ?? [])
        return Credential(name: "robot", fields: ["private-key": Secret(pem), "secret": secret])
    }

    private static func rsa() throws -> _RSA.Signing.PublicKey {
        let credential = Self.credential(.rsaPSS)
        let key = try CryptoMessageKeys().load(of: credential, for: .rsaPSS, challenge: "robot")
        let modulus = try #require(Base64.decode(key.publicMembers["n"] ?? ""))
        let exponent = try #require(Base64.decode(key.publicMembers["e"] ?? ""))
        return try _RSA.Signing.PublicKey(n: modulus, e: exponent)
    }

    /// Appendix B.2.4 is a response, which is not signed here: the key is that of its signature.
    @Test("an ECDSA key makes signatures like that of RFC 9421 appendix B.2.4")
    func elliptic() throws {
        let base = """
            "@status": 200
            "content-type": application/json
            "content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
            "content-length": 23
            "@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;\
            keyid="test-key-ecc-p256"
            """
        let published = "wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="
        let key = try CryptoMessageKeys().load(
            of: Self.credential(.ecdsaP256), for: .ecdsaP256, challenge: "robot")
        let x = try #require(Base64.decode(key.publicMembers["x"] ?? ""))
        let y = try #require(Base64.decode(key.publicMembers["y"] ?? ""))
        let verifier = try P256.Signing.PublicKey(rawRepresentation: x + y)
        let ours = try key.signature(for: Array(base.utf8))
        #expect(ours.count == 64)
        for signature in [ours, try #require(Base64.decode(published))] {
            let signature = try P256.Signing.ECDSASignature(rawRepresentation: signature)
            #expect(verifier.isValidSignature(signature, for: Array(base.utf8)))
        }
    }

    /// The thumbprint is that of the draft "HTTP Message Signatures Directory", whose examples use the key of RFC 9421.
    @Test("an Ed25519 key has the published thumbprint")
    func thumbprint() throws {
        let key = try CryptoMessageKeys().load(pem: Secret(RFC9421Keys.ed25519), for: .ed25519)
        #expect(key.publicMembers["x"] == "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs")
        let published = PublicKey(key, algorithm: "EdDSA")
        #expect(published.thumbprint(by: CryptoDigests()) == "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U")
        let json = String(decoding: published.json(by: CryptoDigests()).serialized(), as: UTF8.self)
        #expect(
            json.contains(#""kid":"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U""#) && json.contains(#""use":"sig""#))
    }
}
