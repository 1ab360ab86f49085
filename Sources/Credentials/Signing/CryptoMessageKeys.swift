// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import ChallengeHandling
internal import Crypto
internal import CryptoExtras
internal import FoundationEssentials
public import Secrets

/// Keys for HTTP message signatures, by swift-crypto.
public struct CryptoMessageKeys: MessageKeys {
    /// Creates the port, without any state.
    public init() {}

    /// Loads a private key from PEM: PKCS #8, and for RSA and P-256 the older formats too, without a passphrase.
    public func load(pem: Secret, for algorithm: MessageKeyAlgorithm) throws(StateError) -> any MessageKey {
        let key: (any MessageKey)? =
            switch algorithm {
            case .ecdsaP256:
                (try? P256.Signing.PrivateKey(pemRepresentation: pem.revealText())).map(P256MessageKey.init)
            case .ed25519: Self.ed25519(pem)
            case .rsaPSS: Self.rsa(pem).flatMap(RSAMessageKey.init)
            }
        if let key { return key }
        throw StateError(reason: "it is not \(algorithm.keyDescription) in PEM without a passphrase")
    }

    private static func ed25519(_ pem: Secret) -> (any MessageKey)? {
        guard let info = PrivateKeyInfo(pem: pem), info.algorithm == .ed25519 else { return nil }
        var seed = info.key
        defer { _ = Secret(taking: &seed) }
        return (try? Curve25519.Signing.PrivateKey(rawRepresentation: seed)).map(Ed25519MessageKey.init)
    }

    private static func rsa(_ pem: Secret) -> _RSA.Signing.PrivateKey? {
        if let key = try? _RSA.Signing.PrivateKey(pemRepresentation: pem.revealText()) { return key }
        guard let info = PrivateKeyInfo(pem: pem), info.algorithm == .rsaPSS else { return nil }
        var der = info.key
        defer { _ = Secret(taking: &der) }
        return try? _RSA.Signing.PrivateKey(derRepresentation: der)
    }
}

extension MessageKeyAlgorithm {
    /// Key in words, for messages.
    fileprivate var keyDescription: String {
        switch self {
        case .ecdsaP256: "a private EC key over P-256"
        case .ed25519: "a private Ed25519 key (PKCS #8)"
        case .rsaPSS: "a private RSA key of 2048 bits or more"
        }
    }
}

/// ECDSA over P-256 with SHA-256, the signature as two numbers (RFC 9421 §3.3.4).
private struct P256MessageKey: MessageKey {
    let key: P256.Signing.PrivateKey

    var publicMembers: [String: String] {
        let point = Array(key.publicKey.rawRepresentation)
        return [
            "kty": "EC", "crv": "P-256", "x": point.prefix(32).base64URL, "y": point.dropFirst(32).base64URL,
        ]
    }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        guard let signature = try? key.signature(for: message) else {
            throw StateError(reason: "the EC key could not sign")
        }
        return Array(signature.rawRepresentation)
    }
}

/// Ed25519 (RFC 9421 §3.3.6).
private struct Ed25519MessageKey: MessageKey {
    let key: Curve25519.Signing.PrivateKey

    var publicMembers: [String: String] {
        ["kty": "OKP", "crv": "Ed25519", "x": Array(key.publicKey.rawRepresentation).base64URL]
    }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        guard let signature = try? key.signature(for: message) else {
            throw StateError(reason: "the Ed25519 key could not sign")
        }
        return Array(signature)
    }
}

/// RSASSA-PSS with SHA-512, MGF1 with SHA-512, and a salt of 64 bytes (RFC 9421 §3.3.1).
private struct RSAMessageKey: MessageKey {
    let publicMembers: [String: String]
    private let key: _RSA.Signing.PrivateKey

    init?(_ key: _RSA.Signing.PrivateKey) {
        guard let numbers = try? key.publicKey.getKeyPrimitives() else { return nil }
        self.key = key
        publicMembers = [
            "kty": "RSA", "n": Array(numbers.modulus.drop { $0 == 0 }).base64URL,
            "e": Array(numbers.publicExponent.drop { $0 == 0 }).base64URL,
        ]
    }

    func signature(for message: [UInt8]) throws(StateError) -> [UInt8] {
        guard let signature = try? key.signature(for: SHA512.hash(data: message), padding: .PSS) else {
            throw StateError(reason: "the RSA key could not sign")
        }
        return Array(signature.rawRepresentation)
    }
}

extension Collection<UInt8> {
    fileprivate var base64URL: String { Base64.encode(self, .url) }
}
