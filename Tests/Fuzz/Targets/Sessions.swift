// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets

@testable import ChallengeHandling

/// Sessions as another process wrote them down.
func fuzzSessions(_ input: Span<UInt8>) throws(Violation) {
    guard let images = try? SessionImages.decoded(Secret(input.array)) else { return }
    let again = try? SessionImages.decoded(SessionImages.encoded(images))
    try require(again == images, "what was read is not what is written")
    for image in images {
        for field in image.fields {
            try require(
                !field.value.revealBytes().contains { $0 == 10 || $0 == 13 || $0 == 0 }, "a line end in a field")
        }
        if let signer = image.signer, let digest = DigestImage(signer) {
            try require(digest.encoded.flatMap(DigestImage.init) == digest, "a Digest signer is written otherwise")
        }
        guard let session = image.session(credential: nil, codec: .none) else { continue }
        try require(session.isVerified && session.expiresAt == image.expiresAt, "another session")
        guard let cookies = session.cookies else { continue }
        for path in ["/", "/app/login"] {
            let url = WebURL(origin: image.key.origin, path: path)
            let header = cookies.merged(with: [], for: url, now: 0) ?? []
            try require(!header.contains { $0 == 10 || $0 == 13 || $0 == 0 }, "a line end in a cookie")
        }
    }
}
