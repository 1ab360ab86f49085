// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import TestSupport
import Testing

@Suite("Token endpoints that the resource itself leads to")
struct DiscoveryTests {
    private static func kind(_ port: UInt16, _ more: String..., issuer: String? = nil) -> FakeKind {
        let issuer = issuer ?? "http://127.0.0.1:\(port)/tenant"
        return FakeKind(
            script: "told-resource", arguments: ["\(port)"] + more,
            challenge: """
                scheme: bearer
                token: { issuers: ["https://id.example.com", "\(issuer)"], grant: client-credentials }
                """, fields: ["CLIENT_ID": "ann", "CLIENT_SECRET": "demo"])
    }

    @Test(
        "are asked where the configuration allows their server, by OAuth's address and by OpenID's",
        arguments: [[], ["--openid"]])
    func found(more: [String]) async throws {
        var kind = Self.kind(Ports.next())
        kind.arguments += more
        try await withFake(kind) { bank, fake in
            let first = try await bank.expect("/app/a", "-d", "a=b", status: 200)
            #expect(first.json?["principal"]?.string == "ann", "\(first.summary)")
            let before = fake.requests.count
            try await bank.expect("/app/b", status: 200)
            #expect(fake.requests.count == before + 1 && fake.logins == ["ann ok"])
            try await fake.direct("/-fake/expire?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/app/c")
            #expect(fake.logins.count == 2)
        }
    }

    @Test("get a secret in the way that their server says, and are told the scope that the resource names")
    func asTold() async throws {
        var kind = Self.kind(Ports.next())
        kind.arguments += ["--post", "--greedy"]
        try await withFake(kind) { bank, fake in
            // The suite of the Model Context Protocol allows three token requests (scope-retry-limit).
            for _ in 0..<3 { try await bank.expect("/app/a", status: 403) }
            #expect(fake.logins == ["ann ok", "ann ok"])
            let asked = fake.server.filter { $0.hasPrefix("POST ") }
            #expect(asked == ["POST /tenant/token 200 all", "POST /tenant/token 200 all"])
        }
    }

    @Test("get no secret where the configuration does not allow their server")
    func notAllowed() async throws {
        let kind = Self.kind(Ports.next(), issuer: "http://127.0.0.1:1/tenant")
        try await withFake(kind) { bank, fake in
            let answer = try await bank.expect("/app/a", code: "login-failed")
            #expect(answer.detail.contains("token.issuers"))
            #expect(fake.logins.isEmpty && fake.server.isEmpty)
        }
    }

    @Test("get no secret where their server puts them at another origin")
    func elsewhere() async throws {
        let port = Ports.next()
        try await withFake(Self.kind(port, "--elsewhere", "\(Ports.next())")) { bank, fake in
            let answer = try await bank.expect("/app/a", code: "login-failed")
            #expect(answer.detail.contains("another origin"))
            #expect(fake.logins.isEmpty && fake.server.allSatisfy { $0.hasPrefix("GET ") }, "\(fake.server)")
        }
    }

    @Test("get a wrong secret once")
    func wrong() async throws {
        var kind = Self.kind(Ports.next())
        kind.fields["CLIENT_SECRET"] = "not-it"
        try await withFake(kind) { bank, fake in
            try await bank.expect("/app/a", code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/app/a", code: "login-latched") }
            #expect(fake.logins == ["ann wrong"])
        }
    }
}
