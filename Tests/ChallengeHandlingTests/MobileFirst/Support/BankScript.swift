// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

/// A bank that a MobileFirst server protects, and the steps of a conversation with it.
enum Bank {
    static let api = "https://mfp.example.com/mfp/api"
    static let origin = Origin(scheme: .https, host: "mfp.example.com")

    static func configuration(
        platform: MobileFirstConfiguration.Platform = .ios, application: String = "com.sample.pincode",
        version: String = "1.0"
    ) throws -> MobileFirstConfiguration {
        MobileFirstConfiguration(
            api: try #require(WebURL(api)), application: application, platform: platform, version: version)
    }

    static func client(_ keys: ScriptedKeys = ScriptedKeys()) throws -> MobileFirstClient {
        MobileFirstClient(name: "bank", configuration: try configuration(), keys: keys)
    }

    static func login(
        _ handlers: [any SecurityCheckChallengeHandler]? = nil, scope: [String] = ["PinCodeAttempts"]
    ) throws -> any SessionLogin {
        try client().login(scope: scope, handlers: try handlers ?? [pin()])
    }

    /// Returns a handler for the PIN.
    static func pin(
        keepAttempts: Int = 1, retryRejectedAfter: Duration? = nil
    ) throws -> CredentialChallengeHandler {
        CredentialChallengeHandler(
            securityCheck: "PinCodeAttempts",
            key: LatchKey(origin: origin, challenge: "bank-pin-challenge", credential: "bank-pin"),
            answer: try AnswerTemplate(["pin": "{pin}"]), keepAttempts: keepAttempts,
            retryRejectedAfter: retryRejectedAfter)
    }

    /// Returns a handler for name and password.
    static func user() throws -> CredentialChallengeHandler {
        CredentialChallengeHandler(
            securityCheck: "UserLogin", key: LatchKey(origin: origin, challenge: "bank-user", credential: "ann"),
            answer: try AnswerTemplate(["username": "{username}", "password": "{password}", "rememberMe": true]))
    }
}

extension [ScriptedStep] {
    /// Steps after the last answer.
    static let granted: [ScriptedStep] = [
        .preauthorize(answers: ["PinCodeAttempts": ["pin": "1234"]]), .authorization, .token,
    ]
    /// Returns the first preauthorization and its challenge.
    static func challenged(_ challenges: JSONValue = ["PinCodeAttempts": ["errorMsg": nil, "remainingAttempts": 3]])
        -> Self
    {
        [.register, .preauthorize().challenging(challenges)]
    }
}

extension ScriptedStep {
    static let register = ScriptedStep(
        .post, "\(Bank.api)/registration/v1/self",
        .success(SideResponse(status: 201, fields: [.location: "/mfp/api/registration/clients/client-1"])))

    static let authorization = ScriptedStep(
        .get, "\(Bank.api)/az/v1/authorization",
        .success(SideResponse(status: 302, fields: [.location: "http://mfpredirecturi?code=4711-code"]))
    ) { $0.query("response_type") == "code" && $0.query("client_id") == "client-1" }

    static let token = ScriptedStep(
        .post, "\(Bank.api)/az/v1/token",
        .success(
            SideResponse(
                status: 200,
                body: Array(
                    #"{"access_token":"eyJ0b2tlbiI6MX0","token_type":"Bearer","expires_in":3599,"scope":"x"}"#.utf8)))
    ) { $0.form("grant_type") == "authorization_code" && $0.form("code") == "4711-code" }

    /// Returns a preauthorization with exactly these answers, for which all checks pass.
    static func preauthorize(
        answers: JSONValue? = nil, client: String = "client-1", location: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        ScriptedStep(
            .post, "\(Bank.api)/preauth/v1/preauthorize",
            .success(SideResponse(status: 200, body: Array(#"{"successes":{"PinCodeAttempts":{}}}"#.utf8))),
            location: location
        ) { request in
            request.json?["client_id"] == .string(client) && request.json?["challengeResponse"] == answers
                && request.fields[.contentType] == "application/json"
        }
    }

    /// Returns this request, answered by a 401 with these challenges.
    func challenging(_ challenges: JSONValue, successes: JSONValue = [:], _ more: HTTPFields = [:]) -> ScriptedStep {
        var fields = more
        fields[.wwwAuthenticate] = "MFP-Challenge"
        let body = JSONValue.object(["challenges": challenges, "successes": successes]).serialized()
        return replying(401, fields, String(decoding: body, as: UTF8.self))
    }

    /// Returns this request, answered by a 403 with these failures.
    func failing(_ failures: JSONValue, _ fields: HTTPFields = [:]) -> ScriptedStep {
        replying(403, fields, String(decoding: JSONValue.object(["failures": failures]).serialized(), as: UTF8.self))
    }

    /// This request, answered by a conflict.
    var conflicting: ScriptedStep {
        replying(409, HTTPField.Name("MFP-Conflict").map { [$0: "1"] } ?? [:])
    }

    /// This request from a client that the server has forgotten.
    var forgotten: ScriptedStep {
        replying(400, [:], #"{"errorCode":"INVALID_CLIENT_ID","errorMsg":"no such client"}"#)
    }
}
