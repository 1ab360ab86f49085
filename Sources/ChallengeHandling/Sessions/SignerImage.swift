// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import Secrets

/// State by which another process goes on signing, besides the credential: bytes that only the signer's own kind reads.
public struct SignerImage: Sendable, Equatable {
    /// The largest number of bytes.
    public static let limit = 256 * 1024

    /// The bytes. They begin with a mark of their kind: an authenticator with several schemes asks each of them.
    public let bytes: Secret

    /// An image; `nil` if there are more than `limit` bytes.
    public init?(_ bytes: Secret) {
        guard bytes.count <= Self.limit else { return nil }
        self.bytes = bytes
    }
}

/// Makes the signers of an authenticator's sessions anew, after a restart.
public struct SignerCodec: Sendable {
    /// For authenticators whose signers end with their process, or whose sessions have none.
    public static let none = SignerCodec { _, _ in nil }

    private let decode: @Sendable (SignerImage, Credential) -> (any RequestSigner)?

    /// A codec. `decode` is given an image that may be damaged or of another kind, for which it has no signer.
    public init(decode: @escaping @Sendable (SignerImage, Credential) -> (any RequestSigner)?) {
        self.decode = decode
    }

    /// The signer that `image` was taken of; `nil` if none can be made of it with `credential`.
    public func signer(of image: SignerImage, for credential: Credential) -> (any RequestSigner)? {
        decode(image, credential)
    }
}
