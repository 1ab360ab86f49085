// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Crypto
import CryptoExtras
import FoundationEssentials
import Secrets
import Testing

@testable import Credentials

@Suite("Message digests")
struct CryptoDigestsTests {
    private let digests = CryptoDigests()

    private func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }

    @Test(
        "digests of \"abc\" match RFC 1321 and FIPS 180-4",
        arguments: [
            (DigestAlgorithm.md5, "900150983cd24fb0d6963f7d28e17f72"),
            (.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                .sha512,
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                    + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            ),
            (.sha512t256, "53048e2681941ef99b2e29b76b4c7dabe4c2d0c634fc6d46e0e2f13107e7af23"),
        ])
    func abc(algorithm: DigestAlgorithm, expected: String) {
        #expect(hex(digests.digest(algorithm, of: Array("abc".utf8))) == expected)
    }

    @Test(
        "SHA-512/256 pads its last block for every message length",
        arguments: [
            (0, "c672b8d1ef56ed28ab87c3622c5114069bdd3ad7b8f9737498d0c01ecef0967a"),
            (111, "0239e429f98d0ed61ee8e2a7c30afe98c1c3a80ce5dff62a107e9c538f7632ce"),
            (112, "9216b5303edb66504570bee90e48ea5beaa5e9fe9f760bbd3e0460559fc005f6"),
            (127, "2fe3b2a6ee7e12f6fe4ba82166541ad9b4ed882c493581cbe300d68f3757b778"),
            (128, "b88f97e274f9c1d49f181c8cbd01a9c74930ad055a46ac4499a1d601f1c80bf2"),
            (129, "fb9035c9009ed4a60e37510339ebdb1c771339f30aa581d5dea3690a524c23f1"),
            (255, "3c07343720a65d00043af3a6514586dde8602a68b7cebde6bd8ffa48ba37afef"),
        ])
    func blocks(length: Int, expected: String) {
        #expect(hex(digests.digest(.sha512t256, of: Array(repeating: UInt8(ascii: "a"), count: length))) == expected)
    }

    @Test("SHA-512/256 of two blocks matches the example of NIST")
    func twoBlocks() {
        let message =
            "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrs"
            + "mnopqrstnopqrstu"
        #expect(
            hex(digests.digest(.sha512t256, of: Array(message.utf8)))
                == "3928e184fb8690f840da3988121d31be65cb9d3ef83ee6146feac861e19b563a")
    }

    @Test(
        "message authentication codes match RFC 2202 and RFC 4231",
        arguments: [
            (DigestAlgorithm.md5, "5ccec34ea9656392457fa1ac27f08fbc", "bfecaf4efff90a3a668f3922fec3762d"),
            (.sha1, "b617318655057264e28bc0b6fb378c8ef146be00", "90d0dace1c1bdc957339307803160335bde6df2b"),
            (
                .sha256, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
            ),
            (
                .sha512t256, "9f9126c3d9c3c330d760425ca8a217e31feae31bfe70196ff81642b868402eab",
                "87123c45f7c537a404f8f47cdbedda1fc9bec60eeb971982ce7ef10e774e6539"
            ),
        ])
    func codes(algorithm: DigestAlgorithm, short: String, long: String) {
        func code(_ key: [UInt8], _ text: String) -> String {
            hex(digests.authenticationCode(algorithm, key: Secret(key), of: Array(text.utf8)))
        }
        #expect(code(Array(repeating: 0x0B, count: 20), "Hi There") == short)
        #expect(
            code(Array(repeating: 0xAA, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First") == long)
    }
}

@Suite("RSA signing keys")
struct RSASigningKeysTests {
    private let keys = RSASigningKeys()

    @Test("an RSA signing key makes RS256 signatures that its public numbers verify")
    func verifies() async throws {
        let key = try await keys.generate()
        #expect(key.modulus.count == 256)
        #expect(key.modulus.first != 0)
        #expect(key.exponent == [1, 0, 1])
        let message = Array("header.payload".utf8)
        let signature = try key.signature(for: message)
        let verifier = try _RSA.Signing.PublicKey(n: key.modulus, e: key.exponent)
        func isValid(_ message: [UInt8]) -> Bool {
            verifier.isValidSignature(
                .init(rawRepresentation: signature), for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5)
        }
        #expect(isValid(message))
        #expect(!isValid(message + [0]))
    }

    @Test("an RSA signing key is restored from its serialized form")
    func loads() async throws {
        let key = try await keys.generate()
        let loaded = try keys.load(key.serialized)
        #expect(loaded.modulus == key.modulus)
        #expect(loaded.exponent == key.exponent)
        #expect(loaded.serialized == key.serialized)
        // PKCS #1 v1.5 is deterministic (RFC 8017 §8.2.1).
        #expect(try loaded.signature(for: [1, 2, 3]) == key.signature(for: [1, 2, 3]))
    }

    @Test("an RSA signing key is not loaded from other bytes")
    func refuses() async throws {
        let key = try await keys.generate()
        for bytes in [[], Array("key".utf8), Array(key.serialized.revealBytes().dropLast())] {
            #expect(throws: StateError.self) { try keys.load(Secret(bytes)) }
        }
    }

    @Test("signing keys in PEM make RS256 signatures with RSA and ES256 signatures with P-256")
    func pem() throws {
        let message = Array("header.payload".utf8)
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        for pem in [rsa.pemRepresentation, rsa.pkcs8PEMRepresentation] {
            let key = try keys.load(pem: Secret(pem))
            #expect(key.algorithm == "RS256")
            let signature = _RSA.Signing.RSASignature(rawRepresentation: try key.signature(for: message))
            #expect(
                rsa.publicKey.isValidSignature(
                    signature, for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5))
        }
        let elliptic = P256.Signing.PrivateKey()
        let key = try keys.load(pem: Secret(elliptic.pemRepresentation))
        #expect(key.algorithm == "ES256")
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: try key.signature(for: message))
        #expect(elliptic.publicKey.isValidSignature(signature, for: message))
        for other in ["", "key", P384.Signing.PrivateKey().pemRepresentation, rsa.publicKey.pemRepresentation] {
            #expect(throws: StateError.self) { try keys.load(pem: Secret(other)) }
        }
    }
}
