// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Tokens from a token endpoint")
struct TokenLoginTests {
    @Test("client identifier and secret go by Basic, form-encoded first")
    func basic() async throws {
        let rig = LoginRig.tokens([TokenScript.asked()])
        let session = try await rig.logIn(TokenScript.login(try TokenScript.configuration()))
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Bearer token-1"))])
        #expect(session.expiresAt == LoginRig.now + 60_000)
        let sent = try #require(rig.requests.sent.first)
        // "client%3A1:s3cret%2B%2F%C3%A4"
        #expect(sent.fields[.authorization] == "Basic Y2xpZW50JTNBMTpzM2NyZXQlMkIlMkYlQzMlQTQ=")
        #expect(sent.body == Secret("grant_type=client_credentials"))
    }

    @Test("client identifier and secret go only in the body if configured so")
    func body() async throws {
        let rig = LoginRig.tokens([
            TokenScript.asked {
                $0.form("client_id") == "client:1" && $0.form("client_secret") == "s3cret+/ä"
                    && $0.fields[.authorization] == nil
            }
        ])
        _ = try await rig.logIn(TokenScript.login(try TokenScript.configuration { $0.clientAuthentication = .body }))
    }

    @Test("a client assertion names the client, the endpoint and an expiry, and is never repeated")
    func assertion() async throws {
        let configuration = try TokenScript.configuration { $0.clientAuthentication = .privateKeyJWT }
        var names: Set<JSONValue?> = []
        for _ in 0..<2 {
            let rig = LoginRig.tokens([TokenScript.asked()], TokenScript.credential(["key-id": "key-7"]))
            _ = try await rig.logIn(TokenScript.login(configuration))
            let sent = try #require(rig.requests.sent.first)
            #expect(
                sent.form("client_assertion_type") == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
                    && sent.form("client_secret") == nil && sent.fields[.authorization] == nil)
            let parts = try #require(sent.form("client_assertion")).split(separator: ".").map {
                Base64.decode($0) ?? []
            }
            try #require(parts.count == 3)
            #expect(JSONValue(parsing: parts[0]) == ["alg": "RS256", "typ": "JWT", "kid": "key-7"])
            let payload = try #require(JSONValue(parsing: parts[1]))
            let now = LoginRig.now / 1000
            #expect(payload["iss"] == "client:1" && payload["sub"] == "client:1")
            #expect(payload["aud"] == .string(TokenScript.address))
            #expect(payload["iat"] == .integer(now) && payload["exp"] == .integer(now + 300))
            #expect(parts[2] == Array("signed".utf8))
            names.insert(payload["jti"])
        }
        #expect(names.count == 2)
    }

    @Test("a client with a certificate sends its identifier and no secret, for each grant (RFC 8705 section 2)")
    func certificate() async throws {
        for (grant, name) in [
            (TokenConfiguration.Grant.clientCredentials, "client_credentials"), (.password, "password"),
        ] {
            let rig = LoginRig.tokens([
                TokenScript.asked(name) {
                    $0.form("client_id") == "client:1" && $0.form("client_secret") == nil
                        && $0.form("client_assertion") == nil && $0.fields[.authorization] == nil
                }
            ])
            let configuration = try TokenScript.configuration {
                $0.grant = grant
                $0.clientAuthentication = .tls
            }
            _ = try await rig.logIn(TokenScript.login(configuration))
        }
    }

    @Test("an unusable private key is reported, and nothing is sent")
    func badKey() async throws {
        let rig = LoginRig.tokens([], TokenScript.credential(["private-key": "no key at all"]))
        let failure = await rig.lose(
            TokenScript.login(try TokenScript.configuration { $0.clientAuthentication = .privateKeyJWT }))
        #expect(failure.code == .noCredential && failure.detail.contains("\"private-key\""))
    }

    @Test("name and password go to the token endpoint, with only the identifier of a client without a secret")
    func password() async throws {
        for (secret, id, basic) in [("s3cret", "client:2", true), (nil, "client:2", false), (nil, nil, false)]
            as [(String?, String?, Bool)]
        {
            let rig = LoginRig.tokens(
                [
                    TokenScript.asked("password") {
                        $0.form("username") == "ann-u" && $0.form("password") == "pass&word"
                            && ($0.fields[.authorization] != nil) == basic && $0.form("client_id") == (basic ? nil : id)
                    }
                ], TokenScript.credential(["client-secret": secret, "client-id": id]))
            _ = try await rig.logIn(TokenScript.login(try TokenScript.configuration(.password)))
        }
    }

    @Test(
        "configured scope, audience and parameters are sent, and a parameter may replace a standard one"
    )
    func parameters() async throws {
        let configuration = try TokenScript.configuration { configuration in
            configuration.audience = "https://api.example.com/"
            configuration.parameters = [
                .init(name: "resource", value: try TextTemplate("urn:{username}")),
                .init(name: "scope", value: try TextTemplate("its-own")),
            ]
        }
        let rig = LoginRig.tokens([TokenScript.asked()])
        _ = try await rig.logIn(TokenScript.login(configuration, scope: "write read"))
        #expect(
            rig.requests.sent.first?.body
                == Secret(
                    "grant_type=client_credentials&audience=https%3A%2F%2Fapi.example.com%2F&resource=urn%3Aann-u&scope=its-own"
                ))
        let plain = LoginRig.tokens([TokenScript.asked { $0.form("scope") == "read write" }])
        _ = try await plain.logIn(TokenScript.login(try TokenScript.configuration(), scope: "write read"))
    }

    @Test("the token is sent in the configured field after the configured prefix")
    func placement() async throws {
        let name = try #require(HTTPField.Name("X-Token"))
        for (prefix, value) in [("", "token-1"), ("Token", "Token token-1")] {
            let rig = LoginRig.tokens([TokenScript.asked()])
            let session = try await rig.logIn(
                TokenScript.login(
                    try TokenScript.configuration { $0.placement = TokenPlacement(field: name, prefix: prefix) }))
            #expect(session.fields == [InjectedField(name: name, value: Secret(value))])
        }
    }

    @Test("a missing field of a token request is reported, and nothing is sent")
    func missing() async throws {
        for field in ["client-id", "client-secret"] {
            let rig = LoginRig.tokens([], TokenScript.credential([field: nil]))
            #expect(await rig.lose(TokenScript.login(try TokenScript.configuration())).code == .noCredential)
        }
    }

    @Test(
        "a credential that a token endpoint rejects is latched and not sent again",
        arguments: [
            (400, #"{"error":"invalid_client"}"#), (400, #"{"error":"invalid_grant"}"#),
            (403, #"{"error":"invalid_grant"}"#), (401, ""),
            (401, #"{"error":"invalid_client"}"#), (200, #"{"error":"bad_verification_code"}"#),
            (503, #"{"error":"invalid_client"}"#), (408, #"{"error":"invalid_grant"}"#),
        ])
    func rejected(status: Int, body: String) async throws {
        let rig = LoginRig.tokens([TokenScript.asked().replying(status, [:], body)])
        let login = TokenScript.login(try TokenScript.configuration())
        let failure = await rig.lose(login)
        #expect(failure.code == .rejected && failure.detail.contains("status \(status)"))
        #expect(rig.latches.all.map(\.reason) == [.rejected] && rig.latches.keys == [TokenScript.key])
        let later = await rig.lose(login)
        // The latch keeps the statement that decided.
        #expect(later.code == .latched && later.detail.contains("status \(status)"))
        #expect(rig.requests.sent.count == 1)
    }

    @Test(
        "other answers of a token endpoint say nothing about the credential",
        arguments: [
            (400, #"{"error":"invalid_scope"}"#), (400, #"{"error":"unauthorized_client"}"#),
            (400, #"{"error":"unsupported_grant_type"}"#), (400, ""), (403, ""),
            (404, ""), (302, ""), (429, ""), (429, #"{"error":"invalid_grant"}"#), (500, ""), (503, ""), (408, ""),
            (200, #"{"error":"slow_down"}"#), (503, #"{"error":"temporarily_unavailable"}"#),
        ])
    func unknown(status: Int, body: String) async throws {
        let rig = LoginRig.tokens([TokenScript.asked().replying(status, [.retryAfter: "7"], body)])
        let failure = await rig.lose(TokenScript.login(try TokenScript.configuration()))
        #expect(failure.code == .failed && rig.latches.all.isEmpty && failure.detail.contains("\(status)"))
        #expect(status == 302 || failure.retryAt == LoginRig.now + 7000)
    }

    @Test("an account that the token endpoint calls locked is latched as locked, until the time that it names")
    func locked() async throws {
        let body = #"{"error":"too_many_attempts","error_description":"Your account has been blocked"}"#
        let rig = LoginRig.tokens([TokenScript.asked().replying(429, [.retryAfter: "600"], body)])
        let failure = await rig.lose(TokenScript.login(try TokenScript.configuration()))
        #expect(failure.code == .accountLocked && failure.detail.contains("too_many_attempts"))
        #expect(rig.latches.all.map(\.reason) == [.locked])
        #expect(rig.latches.all.map(\.opensAt) == [LoginRig.now + 600_000])
    }

    @Test("the token endpoint's error code is reported if it is valid")
    func word() async throws {
        for (error, isTold) in [("invalid_scope", true), ("x.y-z", true), ("no word at all", false), ("", false)] {
            let rig = LoginRig.tokens([TokenScript.asked().replying(400, [:], #"{"error":"\#(error)"}"#)])
            let failure = await rig.lose(TokenScript.login(try TokenScript.configuration()))
            #expect(failure.detail.contains("(\(error))") == isTold)
        }
    }

    @Test("a timeout, a lost connection and a failed handshake of a token request say nothing about the credential")
    func noAnswer() async throws {
        for (kind, code) in [
            (.timedOut, .timedOut), (.unreachable, .failed), (.tls, .upstreamTLS), (.badAnswer, .failed),
            (.originNotAllowed, .failed),
        ] as [(SideRequestError.Kind, LoginFailure.Code)] {
            let rig = LoginRig.tokens([TokenScript.asked().replying(.failure(SideRequestError(kind, reason: "")))])
            #expect(await rig.lose(TokenScript.login(try TokenScript.configuration())).code == code)
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("a configured lifetime ends the session of a token whose server names none, and no other")
    func lifetime() async throws {
        let configuration = try TokenScript.configuration()
        for (answer, end) in [
            (#"{"access_token":"token-1"}"#, Int64(90_000)), (#"{"access_token":"t","expires_in":60}"#, 60_000),
        ] {
            let rig = LoginRig.tokens([ScriptedStep(.post, TokenScript.address, TokenScript.answering(answer))])
            let session = try await rig.logIn(
                LimitedTokenLogin(TokenScript.login(configuration), lifetime: .seconds(90)))
            #expect(session.expiresAt == LoginRig.now + end)
        }
    }

    @Test("a static token is used unchanged, unless no field can carry it")
    func fixed() async throws {
        let login = StaticTokenLogin(key: TokenScript.key)
        let session = try await LoginRig.tokens([]).logIn(login)
        #expect(session.fields.map(\.value) == [Secret("Bearer static-token")] && session.expiresAt == nil)
        for token in ["two words", "token-end\r\n", "", "tökèn"] {
            let rig = LoginRig.tokens([], Credential(name: "api-client", fields: ["token": Secret(token)]))
            do {
                _ = try await login.logIn(rig.conversation)
                Issue.record("\(token) was used")
            } catch {
                #expect(error.code == .noCredential)
            }
        }
    }
}

@Suite("Answers of token endpoints")
struct TokenAnswerTests {
    @Test(
        "a token's lifetime is a number or the text of one, and bounded",
        arguments: [
            ("", nil), (#","expires_in":null"#, nil), (#","expires_in":60"#, 60), (#","expires_in":"60""#, 60),
            (#","expires_in":59.9"#, 59), (#","expires_in":"59.9""#, 59), (#","expires_in":1e30"#, 316_224_000),
            (#","expires_in":9223372036854775807"#, 316_224_000),
        ] as [(String, Int64?)])
    func lives(text: String, seconds: Int64?) throws {
        let token = try TokenAnswer(Array(#"{"access_token":"t","token_type":"bEARER"\#(text)}"#.utf8)).token()
        #expect(token.value == Secret("t") && token.seconds == seconds)
        #expect(token.expiresAt(sentAt: 1000) == seconds.map { 1000 + $0 * 1000 })
    }

    @Test(
        "an unusable token answer is refused",
        arguments: [
            "", "<html>", "[]", "{}", #"{"access_token":""}"#, #"{"access_token":7}"#, #"{"access_token":"a b"}"#,
            #"{"access_token":"a\r\nX: y"}"#, #"{"access_token":"\u0000"}"#, #"{"access_token":"é"}"#,
            #"{"access_token":"t","token_type":"mac"}"#, #"{"access_token":"t","token_type":1}"#,
            #"{"access_token":"t","expires_in":0}"#, #"{"access_token":"t","expires_in":-1}"#,
            #"{"access_token":"t","expires_in":"soon"}"#, #"{"access_token":"t","expires_in":"nan"}"#,
            #"{"access_token":"t","expires_in":{}}"#, #"{"access_token":"t","expires_in":true}"#,
            #"{"token":"t"}"#,
        ])
    func refused(body: String) {
        #expect(throws: TokenAnswer.Unusable.self) { try TokenAnswer(Array(body.utf8)).token() }
    }

    @Test("a token that is longer than a field may be is refused")
    func long() {
        let body = #"{"access_token":"\#(String(repeating: "t", count: 32 * 1024 + 1))"}"#
        #expect(throws: TokenAnswer.Unusable.self) { try TokenAnswer(Array(body.utf8)).token() }
    }
}
