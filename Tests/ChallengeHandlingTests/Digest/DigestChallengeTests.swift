// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@Suite("Digest challenges")
struct DigestChallengeTests {
    private func strongest(_ fields: String..., realm: String? = nil) throws -> DigestChallenge? {
        DigestChallenge.strongest(of: try AuthenticationChallenge.parse(fields), realm: realm)
    }

    @Test("a Digest challenge holds all parameters of RFC 7616")
    func everything() throws {
        let challenge = try #require(
            try strongest(
                """
                Digest realm="a \\"b\\"", nonce="n/=", opaque="o", domain="/x  https://h/y", algorithm=SHA-256-sess, \
                qop="auth-int, auth", stale=TRUE, charset=utf-8, userhash=true
                """))
        #expect(challenge.realm == "a \"b\"" && challenge.nonce == "n/=" && challenge.opaque == "o")
        #expect(challenge.domain == ["/x", "https://h/y"])
        #expect(challenge.algorithm == .sha256 && challenge.isSession && challenge.algorithmName == "SHA-256-sess")
        #expect(challenge.protection == .authentication)
        #expect(challenge.isStale && challenge.isUTF8 && challenge.hashesUserName)
    }

    @Test("a Digest challenge of RFC 2069 has neither algorithm nor protection")
    func oldest() throws {
        let challenge = try #require(try strongest("digest Realm=r, NONCE=n"))
        #expect(challenge.algorithm == .md5 && !challenge.isSession && challenge.algorithmName == nil)
        #expect(challenge.protection == nil && !challenge.isStale && challenge.domain.isEmpty)
    }

    @Test(
        "a Digest challenge with unknown requirements is ignored",
        arguments: [
            "Digest nonce=n", "Digest realm=r", "Digest realm=r, nonce=n, algorithm=SHA-1",
            "Digest realm=r, nonce=n, qop=\"auth-conf\"", "Digest realm=r, nonce=n, qop=\"\"",
            "Digest realm=r, nonce=n, algorithm=MD5-sess", "Basic realm=r", "Digest",
        ])
    func ignored(field: String) throws {
        #expect(try strongest(field) == nil)
    }

    @Test("the strongest Digest challenge is used, and of equals the first")
    func strength() throws {
        let weak = "Digest realm=r, nonce=1, qop=auth, algorithm=MD5"
        let sha = "Digest realm=r, nonce=2, qop=auth, algorithm=SHA-256"
        let other = "Digest realm=r, nonce=3, qop=auth, algorithm=SHA-256-sess"
        let unknown = "Digest realm=r, nonce=4, qop=auth, algorithm=SHA-3"
        #expect(try strongest(weak, sha, other, unknown)?.nonce == "2")
        #expect(try strongest("\(unknown), \(weak), Basic realm=r, \(sha)")?.nonce == "2")
        #expect(try strongest(sha, "Digest realm=r, nonce=5, qop=auth, algorithm=SHA-512-256")?.nonce == "5")
    }

    @Test("a Digest challenge of another realm is ignored")
    func realm() throws {
        let fields = "Digest realm=a, nonce=1, qop=auth, algorithm=SHA-256, Digest realm=b, nonce=2, qop=auth"
        #expect(try strongest(fields, realm: "b")?.nonce == "2")
        #expect(try strongest(fields, realm: "B") == nil)
    }
}
