// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Redis
import Testing

@Suite("Names of scripts")
struct ScriptDigestTests {
    @Test(
        "a script's name is its SHA-1, by the examples of FIPS 180 and at the ends of blocks",
        arguments: [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"), ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
            (String(repeating: "a", count: 55), "c1c8bbdc22796e28c0e15163d20899b65621d65a"),
            (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
        ])
    func vectors(text: String, digest: String) {
        #expect(ScriptDigest.of(text) == digest)
    }
}
