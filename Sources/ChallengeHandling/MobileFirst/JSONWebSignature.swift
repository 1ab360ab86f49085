// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The three parts of a JWS (RFC 7515) as MobileFirst takes them, signed as RS256.
struct JSONWebSignature {
    let header: String
    let payload: String
    let signature: String

    /// Signs `payload`. The header holds the public key itself; once the client has an identifier, that too.
    init(signing payload: JSONValue, with key: any SigningKey, clientID: String?) throws(StateError) {
        var publicKey: [String: JSONValue] = [
            "kty": "RSA", "n": .string(Base64.encode(key.modulus, .url)),
            "e": .string(Base64.encode(key.exponent, .url)),
        ]
        if let clientID { publicKey["kid"] = .string(clientID) }
        let header = JSONValue.object(["alg": "RS256", "jwk": .object(publicKey)])
        self.header = Base64.encode(header.serialized(), .url)
        self.payload = Base64.encode(payload.serialized(), .url)
        signature = Base64.encode(try key.signature(for: Array("\(self.header).\(self.payload)".utf8)), .url)
    }

    /// One text, its parts joined by dots.
    var compact: String { "\(header).\(payload).\(signature)" }

    /// An object with the parts by name, as registrations carry it.
    var parts: JSONValue {
        ["header": .string(header), "payload": .string(payload), "signature": .string(signature)]
    }
}
