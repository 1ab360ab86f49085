// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Confidential clients")
struct ConfidentialClientTests {
    private static let client = Credential(
        name: "api-client", fields: ["client-id": Secret("test"), "client-secret": Secret("s3:cret")])
    private static let request = ScriptedStep(
        .post, "\(Bank.api)/az/v1/token",
        .success(
            SideResponse(
                status: 200, body: Array(#"{"access_token":"abc","token_type":"bearer","expires_in":60}"#.utf8)))
    ) { request in
        // "test:s3:cret"
        request.fields[.authorization] == "Basic dGVzdDpzMzpjcmV0" && request.form("grant_type") == "client_credentials"
    }

    private static func login(scope: String = "", retry: Duration? = nil) throws -> ConfidentialClientLogin {
        ConfidentialClientLogin(
            tokenURL: try #require(WebURL("\(Bank.api)/az/v1/token")),
            key: LatchKey(origin: Bank.origin, challenge: "api", credential: "api-client"), scope: Scope(text: scope),
            retryRejectedAfter: retry)
    }

    private static func rig(_ steps: [ScriptedStep], _ credential: Credential? = nil) -> LoginRig {
        LoginRig(steps, credentials: [credential ?? client])
    }

    @Test("identifier and secret obtain a token")
    func wins() async throws {
        let rig = Self.rig([Self.request])
        let session = try await rig.logIn(try Self.login())
        #expect(session.fields.first?.value == Secret("Bearer abc") && session.expiresAt == LoginRig.now + 60_000)
        #expect(rig.requests.sent[0].form("scope") == nil)
        #expect(rig.requests.sent[0].fields[.contentType] == "application/x-www-form-urlencoded")
    }

    @Test("a scope is asked for where one is configured")
    func scope() async throws {
        let rig = Self.rig([Self.request])
        _ = try await rig.logIn(try Self.login(scope: "sendMessage accessRestricted"))
        #expect(rig.requests.sent[0].form("scope") == "accessRestricted sendMessage")
    }

    @Test(
        "a rejected secret is latched and not sent again",
        arguments: [
            (401, ""), (401, #"{"error":"invalid_client"}"#), (400, #"{"error":"invalid_client"}"#),
            (400, #"{"errorCode":"INVALID_CLIENT_ID"}"#),
        ])
    func rejected(status: Int, body: String) async throws {
        let rig = Self.rig([Self.request.replying(status, [:], body)])
        #expect(await rig.lose(try Self.login()).code == .rejected)
        #expect(rig.latches.all.map(\.reason) == [.rejected])
        #expect(await rig.lose(try Self.login()).code == .latched)
    }

    @Test(
        "other answers say nothing about the secret",
        arguments: [
            (403, ""), (400, #"{"error":"invalid_scope"}"#), (400, ""), (429, ""), (500, ""), (200, "<html>"),
            (302, ""),
            (404, ""), (409, ""),
        ])
    func unknown(status: Int, body: String) async throws {
        let rig = Self.rig([Self.request.replying(status, [.retryAfter: "7"], body)])
        let failure = await rig.lose(try Self.login(scope: "a"))
        #expect(failure.isUnknown && failure.challenge == "api" && rig.latches.all.isEmpty)
        #expect(status == 200 || failure.retryAt == LoginRig.now + 7000)
    }

    @Test("a lost connection says nothing about the confidential client's secret")
    func lost() async throws {
        let rig = Self.rig([Self.request.replying(.failure(SideRequestError(.timedOut, reason: "")))])
        #expect(await rig.lose(try Self.login()).code == .timedOut)
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a 409 conflict of the token endpoint has the request sent again")
    func conflict() async throws {
        _ = try await Self.rig([Self.request.conflicting, Self.request]).logIn(try Self.login())
    }

    @Test("a missing or unusable field of the confidential client is reported, and nothing is sent")
    func fields() async throws {
        for fields in [
            ["client-id": Secret("test-id")], ["client-secret": Secret("sec-ret")],
            ["client-id": Secret("te:st"), "client-secret": Secret("sec-ret")],
        ] {
            let rig = Self.rig([], Credential(name: "api-client", fields: fields))
            #expect(await rig.lose(try Self.login()).code == .noCredential)
        }
    }
}
