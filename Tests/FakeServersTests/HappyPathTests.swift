// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("the way to a protected resource")
struct HappyPathTests {
    @Test("bearer, challenge, answer, code, token, resource: every step as the product's clients see it")
    func happyPath() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let bare = try phone.resource("bank/balance", token: nil)
        #expect(bare.status == 401)
        #expect(bare.field("WWW-Authenticate") == "Bearer")
        let challenge = try phone.preauthorize("accessRestricted")
        #expect(challenge.status == 401)
        #expect(challenge.field("WWW-Authenticate") == "MFP-Challenge")
        #expect(
            challenge.json?["challenges"] == ["PinCodeAttempts": ["errorMsg": nil, "remainingAttempts": 3]])
        #expect(
            challenge.json?["successes"]?["clockSynchronization"]?["serverTimeStamp"] == 1_469_000_000_000)
        let success = try phone.pin("1234", scope: "accessRestricted")
        #expect(success.status == 200)
        #expect(success.json?["successes"]?["PinCodeAttempts"] == .empty)
        let redirect = try phone.authorize("accessRestricted")
        #expect(redirect.status == 302)
        let token = try phone.token(code: phone.code(redirect))
        #expect(token.status == 200)
        #expect(token.field("Cache-Control") == "no-store")
        #expect(token.json?["expires_in"] == 60)
        #expect(token.json?["token_type"] == "Bearer")
        let balance = try phone.resource("bank/balance", token: token.json?["access_token"]?.string)
        #expect(balance.status == 200)
        #expect(balance.json == ["balance": 1])
        let record = server.recorder.record
        #expect(record.transcript.map(\.status) == [201, 401, 401, 200, 302, 200, 200])
        #expect(record.answerCount() == 1)
        #expect(record.logins == ["PinCodeAttempts": 1])
        #expect(record.hits.map(\.path) == ["/mfp/api/adapters/bank/balance"])
        #expect(record.violations == [])
    }
}
