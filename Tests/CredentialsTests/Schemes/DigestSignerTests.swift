// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
import Testing

@testable import Credentials

@Suite("Digest signer")
struct DigestSignerTests {
    private static let field = "Digest realm=\"r\", nonce=\"one\", qop=\"auth\", algorithm=SHA-256"

    @Test("a Digest signer counts each request of a nonce once, on any thread")
    func counting() async throws {
        let bench = try DigestBench(Self.field)
        let counts = try await withThrowingTaskGroup(of: [String?].self) { group in
            for _ in 0..<8 {
                group.addTask { try (0..<250).map { _ in try bench.answer("POST", "/a?b=c")["nc"] } }
            }
            return try await group.reduce(into: []) { $0 += $1.compactMap(\.self) }
        }
        #expect(counts.count == 2000 && Set(counts).count == 2000)
        #expect(counts.max() == "000007d0" && counts.min() == "00000001")
    }

    @Test("a Digest client nonce cannot be guessed")
    func clientNonce() throws {
        let nonces = try (0..<50).map { _ in try #require(try DigestBench(Self.field).answer()["cnonce"]) }
        #expect(Set(nonces).count == 50 && nonces.allSatisfy { $0.count == 24 })
    }

    @Test("a Digest signer adopts the next nonce and restarts its count")
    func nextNonce() throws {
        let bench = try DigestBench(Self.field)
        _ = try bench.answer()
        let before = try bench.answer()
        try bench.learn("nextnonce=\"two\"")
        let after = try bench.answer()
        #expect(before["nonce"] == "one" && before["nc"] == "00000002")
        #expect(after["nonce"] == "two" && after["nc"] == "00000001" && after["cnonce"] != before["cnonce"])
        // A repeated nonce must not reset the count: the server has seen its first values.
        try bench.learn("nextnonce=\"two\"")
        #expect(try bench.answer()["nc"] == "00000002")
    }

    @Test(
        "a Digest signer continues in another process with nonce, count and client nonce",
        arguments: ["", "-sess"])
    func handedOver(_ suffix: String) throws {
        let bench = try DigestBench(
            "Digest realm=\"r\", nonce=\"one\", qop=\"auth\", algorithm=SHA-256\(suffix), opaque=\"o\", domain=\"/dir/\""
        )
        let first = try bench.answer()
        if suffix.isEmpty { try bench.learn("nextnonce=\"two\"") } else { try bench.learn("") }
        let before = try bench.answer()
        let credential = Credential(
            name: "corp", fields: ["username": Secret("Mufasa"), "password": Secret("Circle of Life")])
        let image = try #require(bench.signer.image)
        let scheme = DigestScheme(digests: CryptoDigests())
        let next = try #require(scheme.signer(of: image, for: credential, challenge: "portal"))
        #expect(next.image == image)
        // The second process continues with what the first would have sent next.
        let expected = try bench.written()
        #expect(
            try next.sign(request("/dir/index.html")).fields.first?.value.revealText() == expected)
        #expect(before["nonce"] == (suffix.isEmpty ? "two" : "one") && first["nonce"] == "one")
        // The first process's answer was accepted, so the signer stays in its protection space.
        #expect(try next.sign(request("/elsewhere")).fields.isEmpty)
    }

    private func request(_ target: String) -> SigningRequest {
        SigningRequest(method: "GET", origin: DigestBench.url.origin, target: target)
    }

    @Test("a worker signs with the next Digest nonce of the server")
    func view() throws {
        let bench = try DigestBench(Self.field)
        let view = bench.signer.makeView()
        #expect(try signed(by: view)["nonce"] == "one")
        try bench.learn("nextnonce=\"two\"")
        let (second, third) = (try signed(by: view), try signed(by: view))
        #expect(second["nonce"] == "two" && second["nc"] == "00000001")
        #expect(third["nonce"] == "two" && third["nc"] == "00000002")
    }

    @Test("concurrent workers never use a Digest nonce count twice, while nonces change")
    func workers() async throws {
        let bench = try DigestBench(Self.field)
        let (workers, rounds) = (8, 400)
        let pairs = try await withThrowingTaskGroup(of: [String].self) { group in
            for worker in 0..<workers {
                group.addTask {
                    let view = bench.signer.makeView()
                    return try (0..<rounds).map { round in
                        let answer = try signed(by: view)
                        if round % 100 == worker { try bench.learn("nextnonce=\"\(worker)-\(round)\"") }
                        return "\(answer["nonce"] ?? "") \(answer["nc"] ?? "")"
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(pairs.count == workers * rounds && Set(pairs).count == pairs.count)
        #expect(Set(pairs.compactMap { $0.split(separator: " ").first }).count > 1)
    }

    /// Returns the parameters that `view` signs.
    private func signed(by view: any SignerView) throws -> AuthenticationChallenge {
        var values: [String] = []
        _ = try view.sign(request("/dir/index.html")) { _, value in
            values.append(String(decoding: value.indices.map { value[$0] }, as: UTF8.self))
        }
        return try #require(ChallengeList(values).challenges.first)
    }

    @Test("a late answer to an earlier Digest nonce provides no next nonce")
    func late() throws {
        let bench = try DigestBench(Self.field)
        let first = try #require(try bench.answer()["cnonce"])
        try bench.learn("nextnonce=\"two\", cnonce=\"\(first)\", nc=00000001, qop=auth")
        try bench.learn("nextnonce=\"three\", cnonce=\"\(first)\", nc=00000001, qop=auth")
        #expect(try bench.answer()["nonce"] == "two")
    }

    @Test("a refusal and a malformed field provide no next Digest nonce")
    func notTaken() throws {
        let bench = try DigestBench(Self.field)
        try bench.learn("nextnonce=\"two\"", status: 401)
        try bench.learn("nextnonce=\"two")
        try bench.learn("nextnonce=\"\"")
        try bench.learn("Digest nextnonce=\"two\"")
        #expect(try bench.answer()["nonce"] == "one")
    }

    @Test("a -sess Digest key contains the first nonces and stays the same")
    func session() throws {
        let bench = try DigestBench("Digest realm=\"r\", nonce=\"one\", qop=\"auth\", algorithm=MD5-sess")
        _ = try bench.answer()
        try bench.learn("nextnonce=\"two\"")
        #expect(try bench.answer()["nonce"] == "one")
    }

    /// RFC 2617 section 3.5's request; its answer's proof by the same formula without the method.
    @Test("a Digest signer adopts nothing from a server with a wrong rspauth", arguments: [true, false])
    func proof(isRight: Bool) throws {
        let bench = try DigestBench(
            "Digest realm=\"testrealm@host.com\", qop=\"auth\", nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"",
            password: "Circle Of Life", clientNonce: "0a4f113b")
        _ = try bench.answer()
        let proof = isRight ? "376602cfd2f4e8e5e78b948a85263e85" : "376602cfd2f4e8e5e78b948a85263e86"
        try bench.learn(
            "qop=auth, rspauth=\"\(proof)\", cnonce=\"0a4f113b\", nc=00000001, nextnonce=\"two\"")
        #expect(try bench.answer()["nonce"] == (isRight ? "two" : "dcd98b7102dd2f0e8b11d0f600bfb0c093"))
    }

    @Test(
        "an accepted Digest signer answers only within its protection space",
        arguments: [
            ("/dir/", ["/dir/a", "/dir/"], ["/", "/di", "/other"]),
            ("/dir/ /more", ["/dir/x", "/more?y"], ["/mor"]),
            ("https://host.com/dir/ https://elsewhere.com/x", ["/dir/x"], ["/x"]),
            // The list omits its own address, or names only other origins: the space is then the whole origin.
            ("/elsewhere/", ["/a", "/dir/a"], []), ("https://elsewhere.com/", ["/a"], []), ("", ["/a"], []),
        ])
    func space(domain: String, inside: [String], outside: [String]) throws {
        let bench = try DigestBench(Self.field + ", domain=\"\(domain)\"")
        for target in inside + outside { #expect(try bench.written("GET", target) != nil) }
        try bench.learn("", status: 401)
        for target in outside { #expect(try bench.written("GET", target) != nil) }
        try bench.learn("", status: 404)
        for target in inside { #expect(try bench.written("GET", target) != nil) }
        for target in outside { #expect(try bench.written("GET", target) == nil) }
    }
}

/// A signer for tests, and accessors for its answers.
struct DigestBench {
    static let url = WebURL(origin: Origin(scheme: .https, host: "host.com"), path: "/dir/index.html")

    let signer: DigestSigner
    let challenge: DigestChallenge

    /// Creates a signer that answers `field`, with `clientNonce` or random ones.
    init(
        _ field: String, user: String = "Mufasa", password: String = "Circle of Life", clientNonce: String? = nil,
        url: WebURL = DigestBench.url
    ) throws {
        let challenges = ChallengeList([field]).challenges
        challenge = try #require(DigestChallenge.strongest(of: challenges))
        let credential = Credential(name: "corp", fields: ["username": Secret(user), "password": Secret(password)])
        let pair = try NameAndPassword(credential, challenge: "portal")
        signer = DigestSigner(
            challenge, at: url, for: pair, name: "portal", digests: CryptoDigests(),
            makeNonce: { clientNonce ?? DigestSigner.randomNonce() })
    }

    /// Returns the value of `Authorization` for a request, or `nil`.
    func written(
        _ method: String = "GET", _ target: String = "/dir/index.html", body: SigningRequest.Body = .none
    ) throws -> String? {
        try signer.sign(SigningRequest(method: method, origin: Self.url.origin, target: target, body: body)).fields
            .first?.value.revealText()
    }

    /// Returns the digest of `body`, read in pieces of `size` bytes.
    func digest(of body: [UInt8], in size: Int = 7) throws -> BodyReading {
        let digest = try #require(signer.bodyReader(for: "/dir/index.html"))
        var rest = body[...]
        while !rest.isEmpty {
            digest.update(rest.prefix(size))
            rest = rest.dropFirst(size)
        }
        return BodyReading(digest.form, digest.finish())
    }

    /// Returns the value of `Authorization`, parsed like a challenge.
    func answer(_ method: String = "GET", _ target: String = "/dir/index.html") throws -> AuthenticationChallenge {
        let field = try #require(try written(method, target))
        return try #require(ChallengeList([field]).challenges.first)
    }

    /// Passes the `Authentication-Info` of an accepted answer to the signer.
    func learn(_ info: String, status: Int = 200) throws {
        var fields = HTTPFields()
        fields.append(HTTPField(name: try #require(HTTPField.Name("Authentication-Info")), value: info))
        signer.learn(status: status, fields: fields, target: "/dir/index.html")
    }
}
