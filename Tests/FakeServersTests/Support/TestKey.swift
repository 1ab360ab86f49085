// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Crypto
import CryptoExtras
import FakeServers
import FoundationEssentials

/// A key pair as an application makes one, and the signatures it makes with it.
struct TestKey: Sendable {
    let key: _RSA.Signing.PrivateKey
    /// The alphabet of base64 in which it writes.
    var isURLSafe = true

    init() throws {
        key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    }

    /// One for all tests that do not care: making one takes a while.
    static let shared = Result { try TestKey() }

    func jwk(kid: String?) throws -> JSON {
        let primitives = try key.publicKey.getKeyPrimitives()
        // With the zero byte in front, as Java's BigInteger writes it.
        let members: [JSONMember] = [
            JSONMember("kty", "RSA"), JSONMember("n", .string(encode([0] + Array(primitives.modulus)))),
            JSONMember("e", .string(encode(Array(primitives.publicExponent)))),
        ]
        return .object(members + (kid.map { [JSONMember("kid", .string($0))] } ?? []))
    }

    /// Header, payload and signature of an RS256 signature.
    func sign(_ payload: JSON, kid: String?, algorithm: String = "RS256") throws -> [String] {
        let header: JSON = ["alg": .string(algorithm), "jwk": try jwk(kid: kid)]
        let parts = [encode(header.bytes), encode(payload.bytes)]
        let digest = SHA256.hash(data: Array(parts.joined(separator: ".").utf8))
        let signature = try key.signature(for: digest, padding: .insecurePKCS1v1_5)
        return parts + [encode(Array(signature.rawRepresentation))]
    }

    private func encode(_ bytes: [UInt8]) -> String {
        isURLSafe ? Base64.encodeURL(bytes) : Base64.encode(bytes)
    }
}
