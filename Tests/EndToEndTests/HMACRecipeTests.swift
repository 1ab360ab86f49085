// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("APIs with a signature of their own, by the recipes of the documentation")
struct HMACRecipeTests {
    private static let apis = ["coinbase", "okx", "bybit", "app-configuration", "bitstamp"]

    /// The lines of `sign` in the recipe of that name, from the left edge on.
    private static func recipe(_ name: String) throws -> String {
        let lines = Repository.text(of: "docs/challenges/signatures.md").split(
            separator: "\n", omittingEmptySubsequences: false)
        guard let start = lines.firstIndex(of: "  - name: \(name)") else {
            throw ChildError(description: "signatures.md has no recipe \(name)")
        }
        let challenge = lines[(start + 1)...].prefix { $0.hasPrefix("    ") }
        return challenge.drop { !$0.hasPrefix("    sign:") }.map { $0.dropFirst(4) }.joined(separator: "\n")
    }

    private static func kind(_ api: String, secret: String = "demo-secret") throws -> FakeKind {
        let challenge = try recipe(api)
        // As the API hands it out.
        let isBase64 = challenge.contains("secret-encoding: base64")
        let inBase64 = ["demo-secret": "ZGVtby1zZWNyZXQ=", "other-secret": "b3RoZXItc2VjcmV0"][secret] ?? ""
        return FakeKind(
            script: "../signatures/hmac-verifier", arguments: [api], challenge: challenge,
            fields: [
                "SECRET": isBase64 ? inBase64 : secret, "KEY": "key-1", "ID": "id-1", "PASSPHRASE": "pass-phrase",
            ])
    }

    @Test("requests pass a server that checks them as the API describes it", arguments: apis)
    func passes(api: String) async throws {
        try await withFake(Self.kind(api)) { bank, fake in
            for _ in 0..<3 {
                try await bank.expect("/v1/a%20b?x=1&y=%C3%BC", status: 200)
                try await bank.expect("/v1/orders", status: 200)
                try await bank.expect(
                    "/v1/orders", "-d", #"{"price":"1.10"}"#, "-H", "Content-Type: application/json", status: 200)
                try await bank.expect("/v1/orders", "-X", "POST", "-d", "", status: 200)
            }
            #expect(
                fake.requests.count == 12 && fake.requests.allSatisfy { $0.hasSuffix(" 200 ok") }, "\(fake.requests)")
        }
    }

    @Test("with another secret the server refuses the signature, and no log holds it", arguments: apis)
    func refused(api: String) async throws {
        try await withFake(Self.kind(api, secret: "other-secret")) { bank, fake in
            let answer = try await bank.expect("/v1/orders", status: 401)
            #expect(answer.text == "signature", "\(answer.text)")
            await bank.stopDaemon()
            let log = bank.folder.text(of: "daemon.log")
            #expect(!log.contains("other-secret") && !log.contains("pass-phrase"))
        }
    }
}
