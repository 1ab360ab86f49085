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

/// Example keys of RFC 9421, appendix B.1.
enum RFC9421Keys {
    static let rsaPSS = """
        -----BEGIN PRIVATE KEY-----
        MIIEvgIBADALBgkqhkiG9w0BAQoEggSqMIIEpgIBAAKCAQEAr4tmm3r20Wd/Pbqv
        P1s2+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry5
        3mm+oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7Oyr
        FAHqgDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUA
        AN5WUtzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw
        9lq4aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oy
        c6XI2wIDAQABAoIBAQCUB8ip+kJiiZVKF8AqfB/aUP0jTAqOQewK1kKJ/iQCXBCq
        pbo360gvdt05H5VZ/RDVkEgO2k73VSsbulqezKs8RFs2tEmU+JgTI9MeQJPWcP6X
        aKy6LIYs0E2cWgp8GADgoBs8llBq0UhX0KffglIeek3n7Z6Gt4YFge2TAcW2WbN4
        XfK7lupFyo6HHyWRiYHMMARQXLJeOSdTn5aMBP0PO4bQyk5ORxTUSeOciPJUFktQ
        HkvGbym7KryEfwH8Tks0L7WhzyP60PL3xS9FNOJi9m+zztwYIXGDQuKM2GDsITeD
        2mI2oHoPMyAD0wdI7BwSVW18p1h+jgfc4dlexKYRAoGBAOVfuiEiOchGghV5vn5N
        RDNscAFnpHj1QgMr6/UG05RTgmcLfVsI1I4bSkbrIuVKviGGf7atlkROALOG/xRx
        DLadgBEeNyHL5lz6ihQaFJLVQ0u3U4SB67J0YtVO3R6lXcIjBDHuY8SjYJ7Ci6Z6
        vuDcoaEujnlrtUhaMxvSfcUJAoGBAMPsCHXte1uWNAqYad2WdLjPDlKtQJK1diCm
        rqmB2g8QE99hDOHItjDBEdpyFBKOIP+NpVtM2KLhRajjcL9Ph8jrID6XUqikQuVi
        4J9FV2m42jXMuioTT13idAILanYg8D3idvy/3isDVkON0X3UAVKrgMEne0hJpkPL
        FYqgetvDAoGBAKLQ6JZMbSe0pPIJkSamQhsehgL5Rs51iX4m1z7+sYFAJfhvN3Q/
        OGIHDRp6HjMUcxHpHw7U+S1TETxePwKLnLKj6hw8jnX2/nZRgWHzgVcY+sPsReRx
        NJVf+Cfh6yOtznfX00p+JWOXdSY8glSSHJwRAMog+hFGW1AYdt7w80XBAoGBAImR
        NUugqapgaEA8TrFxkJmngXYaAqpA0iYRA7kv3S4QavPBUGtFJHBNULzitydkNtVZ
        3w6hgce0h9YThTo/nKc+OZDZbgfN9s7cQ75x0PQCAO4fx2P91Q+mDzDUVTeG30mE
        t2m3S0dGe47JiJxifV9P3wNBNrZGSIF3mrORBVNDAoGBAI0QKn2Iv7Sgo4T/XjND
        dl2kZTXqGAk8dOhpUiw/HdM3OGWbhHj2NdCzBliOmPyQtAr770GITWvbAI+IRYyF
        S7Fnk6ZVVVHsxjtaHy1uJGFlaZzKR4AGNaUTOJMs6NadzCmGPAxNQQOCqoUjn4XR
        rOjr9w349JooGXhOxbu8nOxX
        -----END PRIVATE KEY-----
        """
    static let p256 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIFKbhfNZfpDsW43+0+JjUr9K+bTeuxopu653+hBaXGA7oAoGCCqGSM49
        AwEHoUQDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7xB4FivAxzic30tMM
        4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
        -----END EC PRIVATE KEY-----
        """
    static let ed25519 = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
        -----END PRIVATE KEY-----
        """
    static let secret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
}
