// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import DemoUpstream
import TestSupport
import Testing

@Suite("the demonstration's bank")
struct BankTests {
    @Test("the bank's balance takes a registration, a PIN and a token, and each step is reported in a line")
    func balance() throws {
        let bank = BankClient()
        #expect(bank.get("balance", token: nil).field("WWW-Authenticate") == "Bearer")
        let id = try bank.register()
        let challenge = bank.preauthorize(id, pin: nil)
        #expect(challenge.status == 401)
        #expect(challenge.field("WWW-Authenticate") == "MFP-Challenge")
        #expect(challenge.json?["challenges"] == ["PinCodeAttempts": ["errorMsg": nil, "remainingAttempts": 3]])
        #expect(bank.preauthorize(id, pin: "9").status == 401)
        let success = bank.preauthorize(id, pin: "1234")
        #expect(success.status == 200)
        #expect(success.json?["successes"]?["PinCodeAttempts"] == [:])
        let token = try bank.token(id, scope: "accessRestricted")
        #expect(bank.get("balance", token: token).json?["balance"] == "$1,438.20")
        #expect(bank.get("transfer", token: token).status == 405)
        #expect(bank.get("nothing", token: token).status == 404)
        #expect(
            bank.lines == [
                "upstream: /mfp/api/adapters/bank/balance refused: no token",
                "upstream: client of com.sample registered",
                "upstream: challenge PinCodeAttempts issued, 3 attempts remain",
                "upstream: answer to PinCodeAttempts rejected",
                "upstream: challenge PinCodeAttempts issued, 2 attempts remain",
                "upstream: answer to PinCodeAttempts accepted",
                "upstream: token issued for accessRestricted, valid 600 s",
                "upstream: GET /mfp/api/adapters/bank/balance served with 200",
                "upstream: GET /mfp/api/adapters/bank/transfer served with 405",
            ])
    }

    @Test("the bank refuses a token without the scope, and an invalid token")
    func scope() throws {
        let bank = BankClient()
        let token = try bank.token(bank.register(), scope: "RegisteredClient")
        #expect(bank.get("whoami", token: token).status == 200)
        let refused = bank.get("balance", token: token)
        #expect(refused.status == 403)
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"RegisteredClient accessRestricted\""
        #expect(refused.field("WWW-Authenticate") == challenge)
        #expect(bank.get("balance", token: "x").field("WWW-Authenticate") == "Bearer error=\"invalid_token\"")
    }

    @Test("the bank issues no code without the PIN, and a code is valid once")
    func code() throws {
        let bank = BankClient()
        let id = try bank.register()
        #expect(
            bank.authorize(id, scope: "accessRestricted").field("Location")?.hasSuffix("error=access_denied") == true)
        let location = try #require(bank.authorize(id, scope: "").field("Location"))
        let code = String(location.split(separator: "=").last ?? "")
        #expect(bank.redeem(code, for: "another").status == 400)
        #expect(bank.redeem(code, for: id).status == 400)
    }

    @Test("three wrong PINs block the bank's check, even for the right PIN")
    func block() throws {
        let bank = BankClient()
        let id = try bank.register()
        #expect(["1", "2", "3", "1234"].map { bank.preauthorize(id, pin: $0).status } == [401, 401, 403, 403])
        #expect(try bank.preauthorize(bank.register(), pin: "1234").status == 200)
        bank.pass(seconds: 60)
        #expect(bank.preauthorize(id, pin: "1").status == 401)
        #expect(bank.preauthorize(id, pin: "1234").status == 200)
    }

    @Test("the success of the bank's check ends after ten minutes, and its token with it")
    func end() throws {
        let bank = BankClient()
        let id = try bank.register()
        #expect(bank.preauthorize(id, pin: "1234").status == 200)
        bank.pass(seconds: 599)
        let token = try bank.token(id, scope: "accessRestricted")
        #expect(bank.preauthorize(id, pin: nil).status == 200)
        #expect(bank.get("balance", token: token).status == 200)
        bank.pass(seconds: 1)
        #expect(bank.preauthorize(id, pin: nil).status == 401)
        #expect(bank.get("balance", token: token).status == 401)
    }

    @Test("the bank refuses an unregistered client")
    func unknown() {
        let bank = BankClient()
        #expect(bank.preauthorize("nobody", pin: "1234").json?["errorCode"] == "INVALID_CLIENT_ID")
        #expect(bank.authorize("nobody", scope: "").json?["errorCode"] == "INVALID_CLIENT_ID")
    }
}

private final class BankClient: Sendable {
    private let upstream: DemoUpstream
    private let told: Notes
    private let clock: TestClock

    init() {
        let (told, clock) = (Notes(), TestClock())
        self.told = told
        self.clock = clock
        upstream = DemoUpstream(onEvent: { told.add("\($0)") }, now: { clock.now })
    }

    func pass(seconds: Int64) { clock.pass(seconds: seconds) }

    var lines: [String] { told.all }

    func register() throws -> String {
        let payload = Base64.encode(#"{"application":{"id":"com.sample"}}"#.utf8, .url)
        let response = send(
            "POST", "registration/v1/self", json: #"{"signedRegistrationData":{"payload":"\#(payload)"}}"#)
        return try #require(response.field("Location")?.split(separator: "/").last.map(String.init))
    }

    func preauthorize(_ id: String, pin: String?) -> DemoResponse {
        let answer = pin.map { #","challengeResponse":{"PinCodeAttempts":{"pin":"\#($0)"}}"# } ?? ""
        return send(
            "POST", "preauth/v1/preauthorize", json: #"{"client_id":"\#(id)","scope":"accessRestricted"\#(answer)}"#)
    }

    func authorize(_ id: String, scope: String) -> DemoResponse {
        send("GET", "az/v1/authorization?client_id=\(id)&scope=\(scope)&redirect_uri=http%3A%2F%2Fmfpredirecturi")
    }

    func redeem(_ code: String, for id: String) -> DemoResponse {
        upstream.respond(
            to: DemoRequest(
                "POST", "/mfp/api/az/v1/token", fields: [("Content-Type", "application/x-www-form-urlencoded")],
                body: Array("grant_type=authorization_code&code=\(code)&client_id=\(id)".utf8)))
    }

    func token(_ id: String, scope: String) throws -> String {
        let location = try #require(authorize(id, scope: scope).field("Location"))
        let code = try #require(location.split(separator: "=").last)
        return try #require(redeem(String(code), for: id).json?["access_token"]?.stringValue)
    }

    func get(_ resource: String, token: String?) -> DemoResponse {
        upstream.respond(
            to: DemoRequest(
                "GET", "/mfp/api/adapters/bank/\(resource)",
                fields: token.map { [("Authorization", "Bearer \($0)")] } ?? []))
    }

    private func send(_ method: String, _ path: String, json: String = "") -> DemoResponse {
        upstream.respond(
            to: DemoRequest(
                method, "/mfp/api/\(path)", fields: [("Content-Type", "application/json")], body: Array(json.utf8)))
    }
}
