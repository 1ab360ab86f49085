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
        guard let session = image.session(credential: nil, digests: NoDigests()) else { continue }
        try require(session.isProven && session.expiresAt == image.expiresAt, "another session")
        guard let cookies = session.cookies else { continue }
        for path in ["/", "/app/login"] {
            let url = WebURL(origin: image.key.origin, path: path)
            let header = cookies.merged(with: [], for: url, now: 0) ?? []
            try require(!header.contains { $0 == 10 || $0 == 13 || $0 == 0 }, "a line end in a cookie")
        }
    }
}

/// For images that need none.
private struct NoDigests: MessageDigests {
    func digest(_ algorithm: DigestAlgorithm, of bytes: [UInt8]) -> [UInt8] { [] }
    func running(_ algorithm: DigestAlgorithm) -> any RunningDigest { Running(algorithm: algorithm) }
    func authenticationCode(_ algorithm: DigestAlgorithm, key: Secret, of bytes: [UInt8]) -> [UInt8] { [] }

    private final class Running: RunningDigest {
        let algorithm: DigestAlgorithm
        init(algorithm: DigestAlgorithm) { self.algorithm = algorithm }
        func update(_ bytes: ArraySlice<UInt8>) {}
        func finish() -> [UInt8] { [] }
    }
}
