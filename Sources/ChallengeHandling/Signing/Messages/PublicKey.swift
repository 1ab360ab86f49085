// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Public key as a JSON Web Key (RFC 7517), for verifiers of signatures.
package struct PublicKey: Sendable {
    /// Members that describe the key itself: `kty` and the numbers.
    package let members: [String: String]
    /// Name of the algorithm in JOSE.
    package let algorithm: String
    /// Identifier that the signatures name; nil: the thumbprint.
    package let identifier: String?

    /// Creates the public key of `key`.
    package init(_ key: any MessageKey, algorithm: String, identifier: String? = nil) {
        members = key.publicMembers
        self.algorithm = algorithm
        self.identifier = identifier
    }

    /// Returns the thumbprint by SHA-256 (RFC 7638 §3).
    package func thumbprint(by digests: any MessageDigests) -> String {
        // No value has a character that JSON escapes.
        let text = members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\($0.value)\"" }.joined(separator: ",")
        return Base64.encode(digests.digest(.sha256, of: Array("{\(text)}".utf8)), .url)
    }

    /// Returns the key as JSON, with `kid`, `alg` and `use` (RFC 7517 §4).
    package func json(by digests: any MessageDigests) -> JSONValue {
        var object = members.mapValues { JSONValue.string($0) }
        object["alg"] = .string(algorithm)
        object["kid"] = .string(identifier ?? thumbprint(by: digests))
        object["use"] = "sig"
        return .object(object)
    }
}
