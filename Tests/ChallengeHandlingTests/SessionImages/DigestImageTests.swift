// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Digest signers as they are handed over")
struct DigestImageTests {
    private static let image = DigestImage(
        parameters: [.init(name: "realm", value: "a \"b\""), .init(name: "nonce", value: "n")],
        url: WebURL(origin: SampleImages.origin, path: "/start", query: "x=1"), clientNonce: "ours", count: 17,
        isAccepted: true)

    @Test("a Digest signer's image is restored unchanged, but not if truncated, longer, or of another kind")
    func exact() throws {
        let bytes = try #require(Self.image.encoded).bytes.revealBytes()
        #expect(try read(bytes) == Self.image)
        for length in bytes.indices { #expect(try read(Array(bytes[..<length])) == nil) }
        #expect(try read(bytes + [0]) == nil)
        #expect(try read(Array("OTHERS1 ".utf8) + bytes.dropFirst(8)) == nil)
    }

    @Test("a changed byte in a Digest signer's image is an error, or gives a valid image")
    func changed() throws {
        let bytes = try #require(Self.image.encoded).bytes.revealBytes()
        for index in bytes.indices {
            for change: UInt8 in [0x01, 0x80, 0xFF] {
                var bytes = bytes
                bytes[index] ^= change
                guard let image = try read(bytes) else { continue }
                #expect(try read(#require(image.encoded).bytes.revealBytes()) == image)
            }
        }
    }

    @Test("a Digest signer that could not be read back has no image")
    func notWritten() {
        var broken = Self.image
        broken.clientNonce = "a\r\nb"
        var many = Self.image
        many.parameters = (0..<17).map { .init(name: "p\($0)", value: "") }
        var twice = Self.image
        twice.parameters.append(twice.parameters[0])
        #expect(broken.encoded == nil && many.encoded == nil && twice.encoded == nil)
    }

    @Test("of several schemes, the one of the image recreates the signer")
    func ofSeveral() throws {
        let origin = SampleImages.origin
        let plan = SchemePlan(
            name: "api", schemes: [BasicScheme(), DigestScheme(digests: NoDigests())], key: nil,
            address: WebURL(origin: origin, path: "/"))
        let ann = Credential(name: "corp", fields: ["username": Secret("ann"), "password": Secret("p")])
        let image = try #require(Self.image.encoded)
        let other = try #require(SignerImage(Secret("DIGEST2 ")))
        #expect(plan.codec.signer(of: image, for: ann)?.image == image)
        #expect(plan.codec.signer(of: other, for: ann) == nil)
        #expect(plan.codec.signer(of: image, for: Credential(name: "corp", fields: [:])) == nil)
    }

    private func read(_ bytes: [UInt8]) throws -> DigestImage? {
        DigestImage(try #require(SignerImage(Secret(bytes))))
    }
}
