// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Secrets

/// Key of a credential that signs messages, with the identifier that signatures name.
struct MessageSigningKey: Sendable {
    private enum Kind: Sendable {
        case pair(any MessageKey)
        case shared(Secret, any MessageDigests)
    }

    let algorithm: MessageAlgorithm
    /// Value of `keyid`; nil: no parameter.
    let identifier: String?
    private let kind: Kind

    /// Loads the key from a credential; throws `no-credential` if a field is missing or is not a key for the algorithm.
    init(
        of settings: MessageSignature, _ credential: Credential, challenge: String, digests: any MessageDigests,
        keys: any MessageKeys
    ) throws(LoginFailure) {
        algorithm = settings.algorithm
        guard let pair = settings.algorithm.pair else {
            kind = .shared(try credential.required("secret", for: challenge), digests)
            identifier = settings.keyID
            return
        }
        let key = try keys.load(of: credential, for: pair, challenge: challenge)
        kind = .pair(key)
        identifier = settings.keyID ?? PublicKey(key, algorithm: pair.joseName).thumbprint(by: digests)
    }

    /// Returns the signature of a base (RFC 9421 §3.3).
    func signature(for base: [UInt8]) throws(StateError) -> [UInt8] {
        switch kind {
        case .pair(let key): try key.signature(for: base)
        case .shared(let secret, let digests): digests.authenticationCode(.sha256, key: secret, of: base)
        }
    }
}

extension MessageKeys {
    /// Loads the field `private-key` of a credential; throws `no-credential` if it is not a key for the algorithm.
    func load(
        of credential: Credential, for algorithm: MessageKeyAlgorithm, challenge: String
    ) throws(LoginFailure) -> any MessageKey {
        let pem = try credential.required("private-key", for: challenge)
        do throws(StateError) {
            return try load(pem: pem, for: algorithm)
        } catch {
            throw LoginFailure(
                .noCredential, challenge: challenge,
                detail: "The field \"private-key\" of the credential \"\(credential.name)\" cannot sign as "
                    + "\(algorithm.rawValue): \(error.reason). Store the right key, or change `algorithm`.")
        }
    }
}
