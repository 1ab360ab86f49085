// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Crypto
import CryptoExtras
import FoundationEssentials
import Secrets
import Testing

@testable import Credentials

@Suite("Keys of message signatures")
struct MessageKeyTests {
    private let keys = CryptoMessageKeys()

    private func load(_ pem: String, _ algorithm: MessageKeyAlgorithm) throws -> any MessageKey {
        try keys.load(pem: Secret(pem), for: algorithm)
    }

    @Test("keys are loaded in the formats that openssl writes")
    func formats() throws {
        let p256 = P256.Signing.PrivateKey()
        #expect(try load(p256.pemRepresentation, .ecdsaP256).publicMembers["crv"] == "P-256")
        let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
        let plain = try load(rsa.pemRepresentation, .rsaPSS).publicMembers
        #expect(try load(rsa.pkcs8PEMRepresentation, .rsaPSS).publicMembers == plain)
        #expect(try load("\n\(RFC9421Keys.rsaPSS)\n\n", .rsaPSS).publicMembers["e"] == "AQAB")
    }

    @Test(
        "a key of another kind is refused with the kind that is needed",
        arguments: [
            (RFC9421Keys.rsaPSS, MessageKeyAlgorithm.ed25519, "Ed25519"), (RFC9421Keys.p256, .ed25519, "Ed25519"),
            (RFC9421Keys.ed25519, .rsaPSS, "RSA"), (RFC9421Keys.p256, .rsaPSS, "RSA"),
            (RFC9421Keys.ed25519, .ecdsaP256, "P-256"), (RFC9421Keys.rsaPSS, .ecdsaP256, "P-256"),
            ("", .ed25519, "Ed25519"),
        ])
    func others(pem: String, algorithm: MessageKeyAlgorithm, word: String) {
        let error = #expect(throws: StateError.self) { try load(pem, algorithm) }
        #expect(error?.reason.contains(word) == true)
    }

    @Test("an Ed25519 key that is not exactly one key in PKCS #8 is refused")
    func strict() throws {
        let lines = RFC9421Keys.ed25519.split(separator: "\n").map(String.init)
        let der = try #require(Base64.decode(lines[1]))
        #expect(der.count == 48)
        func pem(_ der: [UInt8]) -> String { [lines[0], Base64.encode(der), lines[2]].joined(separator: "\n") }
        #expect(throws: Never.self) { try load(pem(der), .ed25519) }
        for index in [0, 1, 3, 5, 7, 8, 12, 13, 14, 15] {
            var damaged = der
            damaged[index] ^= 1
            // Not the version (byte 4): that of RFC 5958 is 1.
            #expect(throws: StateError.self, "byte \(index)") { try load(pem(damaged), .ed25519) }
        }
        for count in 0..<der.count {
            #expect(throws: StateError.self, "\(count) bytes") { try load(pem(Array(der.prefix(count))), .ed25519) }
        }
        for text in [pem(der + [0]), pem(der) + "\nx", "x" + pem(der), pem(der) + "\n" + pem(der), lines[0] + lines[1]]
        {
            #expect(throws: StateError.self) { try load(text, .ed25519) }
        }
    }
}
