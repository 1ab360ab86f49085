// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import FakeServers
internal import Testing

@Suite("Message signatures, verified by another implementation")
struct MessageSignatureTests {
    /// A signature, and the server that demands it.
    private struct Signature {
        /// Further lines of `sign`.
        var lines: [String] = []
        /// Further arguments of the server.
        var arguments: [String] = []
        /// Further lines of the upstream.
        var upstream = ""
        var message = #"["@method", "@authority", "@path", "@query", "content-digest"]"#
    }

    private func withSignature(
        _ algorithm: SigningPair, _ signature: Signature,
        _ scenario: (_ bank: Bank, _ fake: FakeServer) async throws -> Void
    ) async throws {
        let keys = try await algorithm.keys()
        let lines = ["message: \(signature.message)", "algorithm: \(algorithm.name)"] + signature.lines
        let kind = FakeKind(
            script: "message-signatures", arguments: [algorithm.verifier, keys.verifier] + signature.arguments,
            challenge: (["sign:"] + lines.map { "  \($0)" }).joined(separator: "\n"), upstream: signature.upstream,
            fields: [algorithm.field: keys.signer])
        try await withFake(kind, scenario)
    }

    /// Sends requests of every shape, each of which must succeed.
    private func expectAll(through bank: Bank, _ fake: FakeServer) async throws {
        let paths = ["/", "/a%20b/;x=1?q=1&q=2&%2f=%41+b", "/%C3%A9//x?", "/p??=&", "/a~b!$&'()*+,;=:@"]
        for path in paths { try await bank.expect(path, "--path-as-is", status: 200) }
        let big = bank.folder.write((0..<1_048_576).map { UInt8(truncatingIfNeeded: $0 * 7) }, to: "big")
        for body in ["x", "@\(big)"] {
            try await bank.expect("/upload?q=1&q=2", "--data-binary", body, status: 200)
            try await bank.expect(
                "/upload", "-X", "PUT", "-H", "Transfer-Encoding: chunked", "--data-binary", body, status: 200)
        }
        try await bank.expect("/empty", "-X", "POST", status: 200)
        try await bank.expect("/thing", "-X", "DELETE", status: 200)
        let own = try await bank.expect(
            "/fields", "-H", "Signature: sig1=:AAAA:", "-H", "Signature-Input: sig1=()", "-H",
            "Content-Digest: sha-256=:AAAA:",
            "-d", "x", status: 200)
        let names = (own.json?["fields"]?.elements ?? []).compactMap { $0.elements.first?.string }
        for name in ["signature", "signature-input", "content-digest"] {
            #expect(names.count { $0 == name } == 1, "\(own.text)")
        }
        #expect(fake.arrived.count == paths.count + 7)
        #expect(fake.arrived.contains("POST /upload?q=1&q=2 robot 1048576 \(sha256(bank.folder.bytes(of: "big")))"))
    }

    @Test("every request is signed, with each algorithm", arguments: SigningPair.all)
    func always(algorithm: SigningPair) async throws {
        let signature = Signature(
            lines: ["key-id: k1", "tag: web-bot-auth", "expires: 5m", "nonce: true", "agent: https://robot.example/"],
            arguments: ["--keyid", "k1", "--tag", "web-bot-auth", "--require", "signature-agent"])
        try await withSignature(algorithm, signature) { bank, fake in
            try await expectAll(through: bank, fake)
            #expect(fake.lines("refused") == [])
        }
    }

    @Test("requests are signed as soon as the server asks, with each algorithm", arguments: SigningPair.all)
    func challenged(algorithm: SigningPair) async throws {
        let ask =
            #"a=("@status"), b=("@authority" "user-agent");created;expires;keyid="k1";alg="\#(algorithm.verifier)""#
        let signature = Signature(lines: ["key-id: k1", "when: challenged"], arguments: ["--ask", ask])
        try await withSignature(algorithm, signature) { bank, fake in
            try await expectAll(through: bank, fake)
            #expect(fake.lines("refused") == ["no signature"])
            #expect(fake.lines("signed").allSatisfy { $0.hasPrefix("k1 b \"@authority\"|\"user-agent\"|") })
        }
    }

    @Test("50 callers at once each use a nonce of the server, and none twice")
    func nonces() async throws {
        let signature = Signature(
            lines: ["when: challenged"], arguments: ["--ask", #"s=("@authority" "@target-uri");created"#, "--nonce"])
        try await withSignature(.ed25519, signature) { bank, fake in
            let answers = try await bank.storm(connections: 50, requests: 4) { number in
                "POST /n/\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"
            }
            #expect(answers.count == 200)
            #expect(answers.allSatisfy { $0.status == 200 }, "\(answers.first { $0.status != 200 }?.text ?? "")")
            #expect(Set(fake.arrived).count == 200 && fake.arrived.count == 200)
            #expect(Set(fake.lines("refused")) == ["no signature"])
        }
    }

    @Test("a signature that is not ours to make goes to the caller as the server's challenge")
    func notOurs() async throws {
        let asks = [
            #"s=("@authority");created;tag="another-application""#, #"s=("@authority");keyid="other""#,
            #"s=("@status")"#,
            #"s=("@authority" "@authority")"#, "s=(",
        ]
        for ask in asks {
            let signature = Signature(lines: ["key-id: k1", "when: challenged"], arguments: ["--ask", ask])
            try await withSignature(.ed25519, signature) { bank, fake in
                let answer = try await bank.expect("/a", status: 401)
                #expect(answer.field("accept-signature") == ask && fake.requests == ["GET /a 401"], "\(ask)")
            }
        }
    }

    @Test("a server that refuses every signature gets each request twice at most, and its answer goes to the caller")
    func refusing() async throws {
        let signature = Signature(
            lines: ["key-id: k2", "when: challenged"],
            arguments: ["--keyid", "k1", "--ask", #"s=("@authority");created"#])
        try await withSignature(.ed25519, signature) { bank, fake in
            for number in 0..<5 {
                let before = fake.requests.count
                try await bank.expect("/a/\(number)", status: 401)
                #expect(fake.requests.count <= before + 2)
            }
            #expect(fake.lines("signed") == [])
        }
    }

    @Test("an answer with a thousand labels is searched for the one that can be made")
    func manyLabels() async throws {
        let labels = (0..<1000).map { "l\($0)=1" }.joined(separator: ",")
        let signature = Signature(
            lines: ["when: challenged"], arguments: ["--ask", #"\#(labels),s=("@authority");created"#])
        try await withSignature(.ed25519, signature) { bank, _ in try await bank.expect("/a", status: 200) }
    }

    @Test("a request that lacks a component, or has a longer body than is kept, is refused with the reason")
    func unsignable() async throws {
        let signature = Signature(
            upstream: "\n  replay: { memory: 1KiB, disk: 0 }", message: #"["@authority", "x-tenant", "content-digest"]"#
        )
        try await withSignature(.ed25519, signature) { bank, fake in
            let missing = try await bank.expect("/a", status: 400, code: "bad-request")
            #expect(missing.detail.contains(#""x-tenant" is not in the request"#), "\(missing.detail)")
            try await bank.expect("/a", "-H", "X-Tenant: t", status: 200)
            let long = String(repeating: "x", count: 4096)
            let answer = try await bank.expect(
                "/a", "-H", "X-Tenant: t", "-H", "Expect:", "-d", long, code: "body-not-replayable")
            #expect(answer.detail.contains("replay") && fake.arrived.count == 1, "\(answer.summary)")
        }
    }

    @Test("`keys` prints the public key that verifies the signatures, and no private one")
    func keys() async throws {
        try await withSignature(.ed25519, Signature()) { bank, fake in
            let set = try await bank.countersign("keys", "--json")
            let keys = JSON(parsing: Array(set.output.utf8))?["keys"]?.elements ?? []
            #expect(set.exit == 0 && keys.count == 1, "\(set.errors)")
            let key = keys.first
            #expect(key?["crv"]?.string == "Ed25519" && key?["alg"]?.string == "EdDSA" && key?["use"]?.string == "sig")
            #expect(key?["d"] == nil && !set.output.contains("PRIVATE"))
            try await bank.expect("/a", status: 200)
            #expect(fake.lines("signed").first?.hasPrefix("\(key?["kid"]?.string ?? "-") sig1 ") == true)
            let named = try await bank.countersign("keys", "portal")
            #expect(named.output.contains("\"keys\": ["))
            let other = try await bank.countersign("keys", "other")
            #expect(other.exit == 64 && other.errors.contains("portal"))
        }
        try await withSignature(.hmac, Signature(lines: ["key-id: k1"])) { bank, _ in
            let none = try await bank.countersign("keys")
            #expect(none.exit == 64 && none.errors.contains("no challenge signs with a key pair"))
        }
    }
}

extension JSON {
    /// The elements, if this is an array.
    fileprivate var elements: [JSON] {
        guard case .array(let elements) = self else { return [] }
        return elements
    }
}

/// An algorithm, and its keys by openssl.
struct SigningPair: Sendable, CustomTestStringConvertible {
    /// Name in the configuration.
    var name: String
    /// Name at the verifier.
    var verifier: String
    /// Arguments of `openssl genpkey`; empty for a shared secret.
    var openssl: [String]

    var testDescription: String { name }
    /// The variable's part that names the field of the credential.
    var field: String { openssl.isEmpty ? "SECRET" : "PRIVATE_KEY" }

    static let ed25519 = SigningPair(name: "ed25519", verifier: "ed25519", openssl: ["-algorithm", "ed25519"])
    static let hmac = SigningPair(name: "hmac", verifier: "hmac-sha256", openssl: [])
    static let all = [
        ed25519, hmac,
        SigningPair(
            name: "ecdsa-p256", verifier: "ecdsa-p256-sha256",
            openssl: ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        SigningPair(
            name: "rsa-pss", verifier: "rsa-pss-sha512",
            openssl: ["-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"]),
    ]

    /// Returns new keys: the private one as it is stored, and the verifier's in base64.
    func keys() async throws -> (signer: String, verifier: String) {
        if openssl.isEmpty { return ("topsecret-0123456789", Base64.encode(Array("topsecret-0123456789".utf8))) }
        let folder = try Folder()
        let file = folder.path(of: "key.pem")
        let made = try await Command.run(["/usr/bin/openssl", "genpkey", "-out", file] + openssl, in: folder)
        let shown = try await Command.run(["/usr/bin/openssl", "pkey", "-in", file, "-pubout"], in: folder)
        guard made.exit == 0, shown.exit == 0 else { throw ChildError(description: "\(made.errors)\(shown.errors)") }
        return (folder.text(of: "key.pem"), Base64.encode(Array(shown.output.utf8)))
    }
}
