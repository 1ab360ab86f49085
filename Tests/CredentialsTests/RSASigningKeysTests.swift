// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Crypto
import CryptoExtras
import FoundationEssentials
import Secrets
import Testing

@testable import Credentials

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
