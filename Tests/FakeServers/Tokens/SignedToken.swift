// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials

/// The three parts of a JSON Web Signature (RFC 7515), read but not yet believed.
struct SignedToken: Sendable {
    var header: JSON
    var payload: JSON
    private var signature: [UInt8]
    private var signedText: [UInt8]

    /// Decodes the parts from base64; `nil` if one is not base64, or if header or payload is not a JSON object.
    init?(header: String, payload: String, signature: String) {
        guard let headerJSON = Base64.decode(header).flatMap(JSON.init(parsing:)), headerJSON.members != nil,
            let payloadJSON = Base64.decode(payload).flatMap(JSON.init(parsing:)), payloadJSON.members != nil,
            let signature = Base64.decode(signature)
        else { return nil }
        self.header = headerJSON
        self.payload = payloadJSON
        self.signature = signature
        // The signature covers the text as it came, in either alphabet.
        self.signedText = Array("\(header).\(payload)".utf8)
    }

    /// Takes the compact form `header.payload.signature`.
    init?(compact: String) {
        let parts = compact.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { return nil }
        self.init(header: parts[0], payload: parts[1], signature: parts[2])
    }

    /// The key inside, if the algorithm is RS256.
    var key: RSAPublicKey? {
        header["alg"]?.string == "RS256" ? header["jwk"].flatMap(RSAPublicKey.init) : nil
    }

    /// Returns true if that key signed it with RS256.
    func isSigned(by key: RSAPublicKey) -> Bool {
        header["alg"]?.string == "RS256" && key.isValid(signature: signature, of: signedText)
    }
}

/// An RSA key as a `jwk` brings it.
struct RSAPublicKey: Sendable, Equatable {
    var modulus: [UInt8]
    var exponent: [UInt8]

    /// Reads `{"kty":"RSA","n","e"}`; either alphabet of base64, and a leading zero byte as Java's `BigInteger` writes it.
    init?(_ jwk: JSON) {
        guard jwk["kty"]?.string == "RSA", let n = jwk["n"]?.string.flatMap(Base64.decode),
            let e = jwk["e"]?.string.flatMap(Base64.decode)
        else { return nil }
        modulus = Array(n.drop { $0 == 0 })
        exponent = Array(e.drop { $0 == 0 })
        guard modulus.count >= 256, modulus.count <= 1024, !exponent.isEmpty, exponent.count <= 8 else { return nil }
    }

    /// Returns true if `signature` is this key's signature of the message: RSASSA-PKCS1-v1_5 with SHA-256, as in RS256
    /// (RFC 7518 §3.3).
    func isValid(signature: [UInt8], of message: [UInt8]) -> Bool {
        guard let key = try? _RSA.Signing.PublicKey(n: modulus, e: exponent) else { return false }
        return key.isValidSignature(
            _RSA.Signing.RSASignature(rawRepresentation: signature), for: SHA256.hash(data: message),
            padding: .insecurePKCS1v1_5)
    }
}

/// Returns the SHA-256 of bytes in hexadecimal digits, as in the record of a body.
package func sha256(_ bytes: [UInt8]) -> String {
    SHA256.hash(data: bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
