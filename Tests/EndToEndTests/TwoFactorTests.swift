// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A login in two steps, the second a one-time password")
struct TwoFactorTests {
    /// RFC 6238's own example.
    private static let seed = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"

    /// `period`: how long a one-time password is good, in seconds.
    fileprivate static func kind(period: Int, seed: String = seed) -> FakeKind {
        FakeKind(
            script: "two-factor", arguments: [Self.seed, "--period", "\(period)"],
            challenge: """
                gateway: none
                detect: { status: 302, redirect-to: /login }
                login:
                  - url: form
                    parameters: { user: "{username}", pass: "{password}" }
                    fields: hidden
                    success: { status: 303, redirect-to: /code }
                  - url: form
                    parameters: { code: "{totp}" }
                    fields: hidden
                success: { cookie: mfa }
                failed:
                  - { body-contains: Wrong name or password, because: wrong-password }
                  - { body-contains: Wrong code, because: wrong-password }
                """, fields: ["TOTP_SEED": "otpauth://totp/x?secret=\(seed)&period=\(period)"])
    }

    @Test("needs no code from the caller, and the second request costs no further round trip")
    func principal() async throws {
        try await withFake(Self.kind(period: 30)) { bank, fake in
            let first = try await bank.expect("/app/transfer", "-d", "amount=1", status: 200)
            #expect(first.json?["principal"]?.string == "ann" && first.field("set-cookie") == nil, "\(first.summary)")
            let before = fake.requests.count
            let second = try await bank.expect("/app/", status: 200)
            #expect(second.json?["cookies"]?.string == "mfa; sid")
            #expect(fake.requests.count == before + 1)
            #expect(fake.logins == ["ann ok"] && fake.codes == ["ok"])
        }
    }

    @Test("sends no code twice, nor a password to no purpose, within one step, not even after a restart")
    func sameStep() async throws {
        try await withFake(Self.kind(period: 3600)) { bank, fake in
            try await bank.expect("/app/", status: 200)
            try await fake.direct("/-fake/expire")
            let refused = try await bank.expect("/app/", code: "login-failed")
            #expect(refused.detail.contains("one-time password"))
            #expect((Int(refused.field("retry-after") ?? "") ?? 0) > 60, "\(refused.fields)")
            await bank.killDaemon()
            try await bank.startDaemon()
            try await bank.expect("/app/", code: "login-failed")
            #expect(fake.logins == ["ann ok"] && fake.codes == ["ok"])
        }
    }

    @Test("a wrong password reaches the server once, and no code with it")
    func wrongPassword() async throws {
        try await withFake(Self.kind(period: 30), password: "not-it") { bank, fake in
            try await bank.expect("/app/", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/app/", status: 503, code: "login-latched") }
            #expect(fake.logins == ["ann wrong"] && fake.codes.isEmpty)
        }
    }

    @Test("a wrong code reaches the server once")
    func wrongCode() async throws {
        try await withFake(Self.kind(period: 1, seed: "MFRGGZDFMZTWQ2LKNNWG23TPOA")) { bank, fake in
            try await bank.expect("/app/", status: 502, code: "login-rejected")
            for _ in 0..<2 { try await bank.expect("/app/", status: 503, code: "login-latched") }
            #expect(fake.logins == ["ann ok"] && fake.codes == ["wrong"])
        }
    }
}

extension FakeServer {
    /// The outcomes of the codes that it checked.
    fileprivate var codes: [String] { lines("code").map { String($0.split(separator: " ").last ?? "") } }
}

extension RealTimeTests {
    /// A one-time password is one of a step of time.
    @Suite("A login in two steps, the second a one-time password, over time")
    struct OneTimePasswordTests {
        @Test("goes on over the end of its session under 50 POSTs, with a code of another step")
        func expiry() async throws {
            try await withFake(TwoFactorTests.kind(period: 2)) { bank, fake in
                try await bank.expect("/app/", status: 200)
                // The time step of the login must be over: the step has no second code.
                try await pause(for: .seconds(2))
                try await fake.direct("/-fake/expire?at=25")
                try await fake.expectPostsOnce(through: bank, at: "/app/transfer")
                #expect(fake.logins == ["ann ok", "ann ok"] && fake.codes == ["ok", "ok"])
            }
        }
    }
}
