// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Challenges of other kinds")
struct OtherKindTests {
    private static func confidential(secret: String) -> BankConfiguration {
        var configuration = BankConfiguration()
        configuration.mobileFirst = []
        configuration.challenges = [
            """
            name: reports
            upstream: bank
            scheme: bearer
            credential: reports
            token: { grant: mobilefirst, scope: accessRestricted }
            """
        ]
        configuration.environment = [
            "COUNTERSIGN_REPORTS__CLIENT_ID": "test", "COUNTERSIGN_REPORTS__CLIENT_SECRET": secret,
        ]
        return configuration
    }

    @Test("a confidential client gets its token by identifier and secret, once for all")
    func confidentialClient() async throws {
        try await withBank(Self.confidential(secret: "test")) { bank in
            for _ in 0..<3 { try await bank.expect("/balance", status: 200) }
            #expect(bank.record.tokens == ["accessRestricted"])
            #expect(bank.record.registrations == 0)
        }
    }

    @Test("a wrong client secret is sent once and then latched")
    func wrongSecret() async throws {
        try await withBank(Self.confidential(secret: "wrong")) { bank in
            try await bank.expect("/balance", status: 502, code: "login-rejected")
            for _ in 0..<3 { try await bank.expect("/balance", status: 503, code: "login-latched") }
            #expect(bank.record.count("POST", "/mfp/api/az/v1/token") == 1)
        }
    }

    @Test("fixed fields are put into every request, in place of the caller's own")
    func inject() async throws {
        var configuration = BankConfiguration()
        configuration.challenges.append(
            """
            name: key
            upstream: server
            inject: { X-Api-Key: "key {key}" }
            credential: server-key
            """)
        configuration.environment["COUNTERSIGN_SERVER_KEY__KEY"] = "s3cr3t"
        try await withBank(configuration) { bank in
            let answer = try await bank.expect("/open/echo", "-H", "X-Api-Key: mine", status: 200)
            #expect(answer.json?["fields"].map(fields)?["x-api-key"] == "key s3cr3t")
            #expect(bank.record.registrations == 0)
        }
    }
}
