// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Part of a signature for the body: its digest, or the word that it is not signed.
enum AWSBodyDigest {
    /// SHA-256 of no bytes.
    static let ofNothing = Array("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".utf8)
    /// Word of a store for a body that is not signed.
    static let unsigned = Array("UNSIGNED-PAYLOAD".utf8)

    private static let signedChunks = Array("STREAMING-AWS4-".utf8)
    private static let chunks = Array("STREAMING-UNSIGNED-PAYLOAD-TRAILER".utf8)

    /// Returns the digest of a request's body; throws if the body cannot be signed.
    static func digest(
        of request: SigningRequest, own: [UInt8]?, for signer: AWSSigner
    ) throws(LoginFailure) -> [UInt8] {
        if let own { return try checked(own, for: signer) }
        if case .none = request.body { return ofNothing }
        if let digest = request.body.bytes(.digest(.sha256)) { return Array(Hex.encode(digest).utf8) }
        if signer.leavesBodiesUnsigned || signer.service.takesUnsignedBodies && request.origin.scheme == .https {
            return unsigned
        }
        throw LoginFailure(
            .bodyTooLong, challenge: signer.challenge,
            detail:
                "The signature for \(signer.service.name) covers the whole body, and this one is longer than what is kept "
                + "before it is sent. Raise `replay` of the upstream"
                + (signer.service.takesUnsignedBodies ? ", use https:// there, or set `payload: unsigned`." : "."))
    }

    /// Returns the digest that the caller has sent, which the server compares with the body.
    private static func checked(_ own: [UInt8], for signer: AWSSigner) throws(LoginFailure) -> [UInt8] {
        if own.starts(with: signedChunks) {
            throw LoginFailure(
                .unsignable, challenge: signer.challenge,
                detail:
                    "The request's body is in chunks that the caller has signed itself (x-amz-content-sha256 begins with "
                    + "STREAMING-AWS4). The chunks cannot be signed again: have the client send the body as it is, for example "
                    + "without a checksum in a trailer.")
        }
        let isDigest = own.count == 64 && own.allSatisfy { $0.hexadecimalValue != nil }
        guard isDigest || own == unsigned || own == chunks else {
            throw LoginFailure(
                .unsignable, challenge: signer.challenge,
                detail:
                    "The request's x-amz-content-sha256 is neither a SHA-256 in hexadecimal digits nor UNSIGNED-PAYLOAD. "
                    + "Leave the field out, and it is added.")
        }
        return own
    }
}
