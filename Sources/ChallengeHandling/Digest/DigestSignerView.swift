// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// A Digest signer as one worker uses it: without a lock and without a new secret, but after a change of the nonce.
final class DigestSignerView: SignerView {
    private let signer: DigestSigner
    private var version: UInt64
    private var nonces: DigestNonces
    /// The answer, and what is hashed for it, in memory that the next request uses again.
    private var answer = SecretBuilder(capacity: 512)
    private var scratch = SecretBuilder(capacity: 256)

    init(_ signer: DigestSigner) {
        self.signer = signer
        // Read first: a change during what follows brings another nonce with the next request.
        version = signer.version
        nonces = signer.nonces
    }

    func sign(
        _ request: SigningRequest, _ write: (HTTPField.Name, Span<UInt8>) -> Void
    ) throws(LoginFailure) -> (any AnswerCheck)? {
        guard signer.isMeant(request.target) else { return nil }
        let version = signer.version
        if version != self.version { (nonces, self.version) = (signer.nonces, version) }
        try signer.write(request, by: nonces, to: &answer, scratch: &scratch)
        answer.withBytes { write(.authorization, $0) }
        return nil
    }
}
