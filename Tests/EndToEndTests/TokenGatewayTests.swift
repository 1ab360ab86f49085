// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Logins that answer with a token in JSON")
struct TokenGatewayTests {
    private static let kind = FakeKind.token

    @Test("give the token to each request, and a session that has ended is won again under 50 POSTs")
    func token() async throws {
        try await withFake(Self.kind) { bank, fake in
            let first = try await bank.expect("/api/accounts", status: 200)
            #expect(first.json?["principal"]?.string == "ann", "\(first.summary)")
            let before = fake.requests.count
            try await bank.expect("/api/accounts", "-H", "Authorization: Session mine", status: 200)
            #expect(fake.requests.count == before + 1 && fake.logins == ["ann ok"])
            #expect(!fake.requests.contains { $0.hasPrefix("GET /api/login") })
            try await fake.direct("/-fake/expire?at=25")
            try await fake.expectPostsOnce(through: bank, at: "/api/transfers")
            #expect(fake.logins.count >= 2 && fake.logins.allSatisfy { $0 == "ann ok" }, "\(fake.logins)")
            // What the interface itself refuses without a session of its own is its matter.
            try await bank.expect("/open/accounts", status: 200)
        }
    }

    @Test("are renewed ahead of the end that the answer told")
    func renewed() async throws {
        // A fifth of it is the time for the renewal, and this machine may be busy.
        try await withFake(Self.kind.with("--life", "10")) { bank, fake in
            let areRenewed = try await goingOn(until: { fake.logins.count >= 3 }) { _ in
                try await bank.expect("/api/accounts", status: 200)
            }
            let refused = fake.requests.count { $0.hasSuffix(" 401") }
            #expect(areRenewed && refused == 1, "\(fake.logins) \(refused)")
        }
    }

    @Test("may take several steps, each with what the one before was answered with")
    func steps() async throws {
        var kind = Self.kind.with("--steps")
        kind.challenge = """
            gateway: none
            detect: { status: [401], content-type: application/json }
            login:
              - { url: /api/hello, body: json, extract: { hello: /hello/0/number } }
              - { url: /api/login, body: json, parameters: { user: "{username}", password: "{password}" },
                  headers: { X-Hello: "{hello}" }, extract: { token: /data/token } }
            inject: { Authorization: "Session {token}" }
            """
        try await withFake(kind) { bank, fake in
            try await bank.expect("/api/accounts", "-d", "a=b", status: 200)
            #expect(fake.logins == ["ann ok"])
        }
    }

    @Test("get a wrong password once")
    func wrong() async throws {
        try await withFake(Self.kind, password: "not-it") { bank, fake in
            try await bank.expect("/api/accounts", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/api/accounts", status: 503, code: "login-latched") }
            #expect(fake.logins == ["ann wrong"] && fake.arrived.isEmpty)
        }
    }

    @Test("that answer otherwise than expected are told, and nothing latches")
    func unexpected() async throws {
        var kind = Self.kind
        kind.challenge = kind.challenge.replacing("/data/token", with: "/token")
        try await withFake(kind) { bank, _ in
            let answer = try await bank.expect("/api/accounts", status: 502, code: "login-failed")
            #expect(answer.detail.contains("/token"))
        }
    }
}
