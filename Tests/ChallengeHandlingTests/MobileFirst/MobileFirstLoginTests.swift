// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("MobileFirst logins")
struct MobileFirstLoginTests {
    @Test("a PIN is sent once and establishes a session")
    func happy() async throws {
        let rig = LoginRig(.challenged() + .granted)
        let session = try await rig.logIn(try Bank.login())
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Bearer eyJ0b2tlbiI6MX0"))])
        #expect(session.expiresAt == LoginRig.now + 3_599_000)
        #expect(rig.latches.all.isEmpty)
        #expect(rig.requests.sent[1].json?["scope"] == "PinCodeAttempts RegisteredClient")
        #expect(rig.requests.sent[3].query("scope") == "PinCodeAttempts RegisteredClient")
        #expect(rig.requests.sent[3].query("redirect_uri") == "http://mfpredirecturi")
        #expect(
            rig.steps == [
                "register: 201, registered as com.sample.pincode$ios$1.0",
                "preauthorize: 401, challenge for PinCodeAttempts, 3 attempts remain",
                "answer: given for PinCodeAttempts from the credential bank-pin",
                "preauthorize: 200, all security checks passed", "authorization: 302, grant code",
                "token: 200, valid for 3599 s",
            ])
    }

    @Test("a security check that has passed is not answered again")
    func alreadyPassed() async throws {
        let rig = LoginRig([.register, .preauthorize(), .authorization, .token])
        _ = try await rig.logIn(try Bank.login())
        #expect(rig.credentials.count == 0)
    }

    @Test("two security checks of one 401 are answered in one request")
    func twoChecks() async throws {
        let rig = LoginRig(
            .challenged(["PinCodeAttempts": ["remainingAttempts": 3], "UserLogin": ["errorMsg": nil]]) + [
                .preauthorize(answers: [
                    "PinCodeAttempts": ["pin": "1234"],
                    "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true],
                ]), .authorization, .token,
            ], credentials: [.bankPIN, .ann])
        _ = try await rig.logIn(try Bank.login([Bank.pin(), Bank.user()]))
    }

    @Test("only the newest challenges are answered, since a passed check would be validated anew")
    func mixed() async throws {
        let first = ScriptedStep.preauthorize(answers: ["PinCodeAttempts": ["pin": "1234"]])
        let rig = LoginRig(
            .challenged() + [
                first.challenging(["UserLogin": [:]], successes: ["PinCodeAttempts": [:]]),
                .preauthorize(answers: [
                    "UserLogin": ["username": "ann-u", "password": "pass\"word", "rememberMe": true]
                ]), .authorization, .token,
            ], credentials: [.bankPIN, .ann])
        _ = try await rig.logIn(try Bank.login([Bank.pin(), Bank.user()]))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a challenge may be {}, null or anything", arguments: [[:], nil, "text", [1, 2]] as [JSONValue])
    func oddChallenges(challenge: JSONValue) async throws {
        let rig = LoginRig(.challenged(["PinCodeAttempts": challenge]) + .granted)
        _ = try await rig.logIn(try Bank.login())
    }

    @Test("a security check without a handler fails the login at once, and nothing is looked up or sent")
    func unknownCheck() async throws {
        let rig = LoginRig(.challenged(["Another\u{1B}Check": [:], "PinCodeAttempts": [:]]))
        let failure = await rig.lose(try Bank.login())
        #expect(failure.code == .failed && failure.challenge == "bank")
        #expect(failure.detail.contains("`security-check: Another?Check`"))
        #expect(rig.credentials.count == 0)
    }

    @Test("the scheme of a challenge is compared without regard to case")
    func schemeCase() async throws {
        let step = ScriptedStep.preauthorize().replying(
            401, [.wwwAuthenticate: "mfp-challenge"], #"{"challenges":{"PinCodeAttempts":{}}}"#)
        _ = try await LoginRig([.register, step] + .granted).logIn(try Bank.login())
    }

    @Test(
        "an unexpected preauthorization leaves the outcome unknown, and nothing is answered",
        arguments: [
            (200, "", "<form action=/pkmslogin.form>"), (200, "", "[]"),
            (401, "", #"{"challenges":{"PinCodeAttempts":{}}}"#),
            (401, "Basic realm=\"x\"", #"{"challenges":{"PinCodeAttempts":{}}}"#), (401, "MFP-Challenge", "{}"),
            (401, "MFP-Challenge", #"{"challenges":{}}"#), (401, "MFP-Challenge", "<html>"), (403, "", "{}"),
            (403, "", "forbidden"), (302, "", ""), (404, "", ""), (409, "", ""), (400, "", #"{"errorCode":"OTHER"}"#),
        ])
    func unusable(status: Int, scheme: String, body: String) async throws {
        let fields: HTTPFields = scheme.isEmpty ? [:] : [.wwwAuthenticate: scheme]
        let rig = LoginRig([.register, .preauthorize().replying(status, fields, body)])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.isUnknown && failure.challenge == "bank")
        #expect(failure.detail.contains("\(status)"))
        #expect(rig.credentials.count == 0)
    }

    @Test(
        "an authorization without a grant code fails, and its redirect is not followed",
        arguments: [
            (302, "http://mfpredirecturi?error=invalid_scope&errorMsg=no", "invalid_scope"),
            (302, "https://evil.example.com/login", "302"), (302, "http://mfpredirecturi?code=", "grant code"),
            (302, "http://mfpredirecturi#?code=1", ""), (200, "http://mfpredirecturi?code=4711", "200"),
            (401, "", "401"),
        ])
    func authorization(status: Int, location: String, told: String) async throws {
        let fields: HTTPFields = location.isEmpty ? [:] : [.location: location]
        let rig = LoginRig([.register, .preauthorize(), .authorization.replying(status, fields)])
        let failure = await rig.lose(try Bank.login())
        #expect(failure.isUnknown)
        #expect(told.isEmpty || failure.detail.contains(told))
    }

    @Test(
        "an unusable token answer establishes no session",
        arguments: [
            (200, "<html>"), (200, "{}"), (200, #"{"access_token":""}"#), (200, #"{"access_token":"a b"}"#),
            (200, #"{"access_token":"a\r\nX: y"}"#), (200, #"{"access_token":"a","token_type":"mac"}"#),
            (200, #"{"access_token":"a","expires_in":-5}"#), (200, #"{"access_token":"a","error":"invalid_grant"}"#),
            (201, #"{"access_token":"a"}"#), (400, #"{"error":"invalid_grant"}"#), (401, ""),
        ])
    func badToken(status: Int, body: String) async throws {
        let rig = LoginRig([.register, .preauthorize(), .authorization, .token.replying(status, [:], body)])
        #expect(await rig.lose(try Bank.login()).isUnknown)
    }

    @Test(
        "any lifetime of a MobileFirst token is read without overflow",
        arguments: [
            ("", nil), (#","expires_in":"60""#, LoginRig.now + 60000), (#","expires_in":1.5"#, LoginRig.now + 1000),
            (#","expires_in":9223372036854775807"#, LoginRig.now + 316_224_000_000),
        ] as [(String, Int64?)])
    func tokenLife(member: String, expiresAt: Int64?) async throws {
        let step = ScriptedStep.token.replying(200, [:], #"{"access_token":"a"\#(member)}"#)
        let rig = LoginRig([.register, .preauthorize(), .authorization, step])
        #expect(try await rig.logIn(try Bank.login()).expiresAt == expiresAt)
    }

    @Test("assertions follow the server's clock, in milliseconds")
    func clockOffset() async throws {
        let ahead = LoginRig.now + 7_200_000
        let rig = LoginRig([
            .register,
            .preauthorize().replying(
                200, [:], #"{"successes":{"clockSynchronization":{"serverTimeStamp":\#(ahead)}}}"#),
            .authorization, .token,
        ])
        _ = try await rig.logIn(try Bank.login())
        let assertion = try #require(rig.requests.sent.last?.form("client_assertion")?.split(separator: "."))
        let claims = try #require(JSONValue(parsing: Base64.decode(assertion[1]) ?? []))
        #expect(claims["iat"] == .integer(ahead) && claims["exp"] == .integer(ahead + 60_000))
        #expect(claims["iss"] == "com.sample.pincode$ios$1.0" && claims["sub"] == "client-1")
        #expect(claims["jti"] == "4711-code" && claims["aud"] == "https://mfp.example.com/mfp/api/az/v1/token")
    }

    @Test("a server that challenges forever is given up after eight answers")
    func rounds() async throws {
        let answering = RecordingHandler("PinCodeAttempts") { _ in .submitChallengeAnswer(["pin": "0"]) }
        let again = ScriptedStep.preauthorize(answers: ["PinCodeAttempts": ["pin": "0"]])
        let rig = LoginRig(
            .challenged()
                + Array(repeating: again.challenging(["PinCodeAttempts": [:]]), count: 8))
        #expect(await rig.lose(try Bank.login([answering])).isUnknown)
    }

    @Test("an administrator's notice is reported and acknowledged together with the checks")
    func notice() async throws {
        let notice: JSONValue = ["message": "Closed on\nSunday", "messageId": 12, "messageType": "NOTIFY"]
        let rig = LoginRig(
            .challenged(["PinCodeAttempts": ["remainingAttempts": 3], "wl_remoteDisableRealm": notice]) + [
                .preauthorize(answers: ["PinCodeAttempts": ["pin": "1234"], "wl_remoteDisableRealm": ["messageId": 12]]
                ),
                .authorization, .token,
            ])
        _ = try await rig.logIn(try Bank.login())
        #expect(rig.steps.contains("notice of the server: Closed on Sunday"))

        let other = LoginRig(.challenged(["wl_remoteDisableRealm": ["message": "Update!", "messageType": "BLOCK"]]))
        #expect(await other.lose(try Bank.login()).detail.contains("Update!"))
    }

    @Test("an error code of the MobileFirst server is reported")
    func errorCode() async throws {
        let step = ScriptedStep.preauthorize().replying(400, [:], #"{"errorCode":"INVALID_SCOPE","errorMsg":"1234"}"#)
        #expect(await LoginRig([.register, step]).lose(try Bank.login()).detail.contains("INVALID_SCOPE"))
    }

    @Test("every request of a MobileFirst login goes to the API's origin")
    func origin() async throws {
        let rig = LoginRig(.challenged() + .granted)
        _ = try await rig.logIn(try Bank.login())
        #expect(Set(rig.requests.sent.map(\.url.origin)) == [Bank.origin])
    }
}
