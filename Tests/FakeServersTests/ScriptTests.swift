// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

/// The scripts by which tests of the proxy make the server do rare things.
@Suite("scripts of the security checks")
struct ScriptTests {
    @Test("two checks in one scope are challenged together")
    func twoChecks() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let first = try phone.preauthorize("both")
        #expect(first.json?["challenges"]?.members?.map(\.name) == ["PinCodeAttempts", "UserLogin"])
        let answers: JSON = [
            "PinCodeAttempts": ["pin": "1234"], "UserLogin": ["username": "ann", "password": "ann"],
        ]
        let second = try phone.preauthorize("both", answers)
        #expect(second.status == 200)
        #expect(second.json?["successes"]?["UserLogin"]?["user"]?["id"] == "ann")
    }

    @Test("where answers are wanted together, a part of them is a violation and counts for nothing")
    func together() throws {
        let server = testServer { $0.wantsAllAnswersTogether = true }
        let phone = try TestPhone.registered(at: server)
        let part = try phone.pin("1234", scope: "both")
        #expect(part.json?["challenges"]?.members?.count == 2)
        #expect(server.recorder.record.violations.count == 1)
        #expect(server.recorder.record.answerCount(to: "PinCodeAttempts") == 1)
        let all: JSON = ["PinCodeAttempts": ["pin": "1234"], "UserLogin": ["username": "a", "password": "a"]]
        #expect(try phone.preauthorize("both", all).status == 200)
    }

    @Test("a success beside a challenge")
    func mixed() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        #expect(try phone.pin("1234").status == 200)
        let mixed = try phone.preauthorize("both")
        #expect(mixed.status == 401)
        #expect(mixed.json?["successes"]?["PinCodeAttempts"] == .empty)
        #expect(mixed.json?["challenges"]?.members?.map(\.name) == ["UserLogin"])
    }

    @Test("a failure takes challenges and successes with it")
    func failureAlone() throws {
        let server = testServer {
            $0.checks.append(.failing("wl_remoteDisableRealm", with: ["message": "gone", "downloadLink": "http://x"]))
            $0.checks.append(.failing("Terms", with: ["failure": "Not accepted"]))
        }
        let phone = try TestPhone.registered(at: server)
        let response = try phone.preauthorize("PinCodeAttempts wl_remoteDisableRealm Terms")
        #expect(response.status == 403)
        #expect(response.json?.members?.map(\.name) == ["failures"])
        #expect(response.json?["failures"]?.members?.count == 2)
        #expect(response.json?["failures"]?["wl_remoteDisableRealm"]?["message"] == "gone")
    }

    @Test(
        "a challenge of any shape, under any name", arguments: [[:], nil, ["authenticationRequired": true]] as [JSON])
    func shapes(challenge: JSON) throws {
        let server = testServer { $0.checks = [.pinCodeAttempts(name: "Odd").challenging(with: challenge)] }
        let phone = try TestPhone.registered(at: server)
        #expect(try phone.preauthorize("Odd").json?["challenges"]?["Odd"] == challenge)
        #expect(try phone.preauthorize("Odd", ["Odd": ["pin": "1234"]]).status == 200)
    }

    @Test("malformed answers get the samples' messages")
    func malformedAnswers() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        func message(_ check: String, _ answer: JSON) throws -> JSON? {
            let answers = JSON.object([JSONMember(check, answer)])
            return try phone.preauthorize(check, answers).json?["challenges"]?[check]?["errorMsg"]
        }
        #expect(try message("PinCodeAttempts", ["code": "1234"]) == "Pin code was not provided")
        #expect(try message("UserLogin", ["username": "ann"]) == "Credentials not set properly")
        #expect(try message("UserLogin", ["username": "ann", "password": "x"]) == "Wrong Credentials")
    }

    @Test("a check may begin with one attempt left")
    func startingAttempts() throws {
        let server = testServer { $0.startingAttempts = ["PinCodeAttempts": 1] }
        let phone = try TestPhone.registered(at: server)
        let first = try phone.preauthorize("PinCodeAttempts")
        #expect(first.json?["challenges"]?["PinCodeAttempts"]?["remainingAttempts"] == 1)
        #expect(try phone.pin("0000").status == 403)
    }

    @Test("answers are counted wherever they arrive, also at a blocked check")
    func answersCounted() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        for _ in 0..<4 { _ = try phone.pin("0000") }
        let record = server.recorder.record
        #expect(record.answerCount(to: "PinCodeAttempts") == 4)
        #expect(record.wrongAnswers == ["PinCodeAttempts": 3])
        #expect(record.challenges == ["PinCodeAttempts": 2])
    }

    @Test("state belongs to the client and the check")
    func perClient() throws {
        let server = testServer()
        let first = try TestPhone.registered(at: server)
        let second = try TestPhone.registered(at: server)
        for _ in 0..<3 { _ = try first.pin("0000") }
        #expect(try first.pin("1234").status == 403)
        #expect(try second.pin("1234").status == 200)
    }

    @Test("a forgotten client is unknown everywhere, until it registers again")
    func forgottenOnce() throws {
        let server = testServer()
        var phone = try TestPhone.registered(at: server)
        server.forgetClients()
        let assertion = try phone.assertion(jti: .null)
        let responses = [
            try phone.preauthorize(""), try phone.authorize(""), try phone.token(code: "1"),
            try phone.form("preauth/v1/heartbeat", [("client_assertion", assertion)]),
        ]
        for response in responses {
            #expect(response.status == 400)
            #expect(response.json?["errorCode"] == "INVALID_CLIENT_ID")
        }
        #expect(try phone.register().status == 201)
        #expect(try phone.preauthorize("").status == 200)
    }

    @Test("a client may be unknown for ever")
    func forgottenAlways() throws {
        let server = testServer()
        server.faults.add(Fault(.unknownClient, at: .preauthorize))
        var phone = try TestPhone.registered(at: server)
        for _ in 0..<3 {
            #expect(try phone.preauthorize("").json?["errorCode"] == "INVALID_CLIENT_ID")
            _ = try phone.register()
        }
    }

    @Test("a token may be used up, lapse before its time, or be revoked")
    func tokens() throws {
        let server = testServer { $0.tokenUses = 1 }
        let phone = try TestPhone.registered(at: server)
        let token = try phone.login()
        #expect(try phone.resource("bank/balance", token: token).status == 200)
        #expect(try phone.resource("bank/balance", token: token).status == 401)

        let clock = ManualClock()
        let second = testServer(clock) { $0.earlyExpiry = 5 }
        let other = try TestPhone.registered(at: second)
        let early = try other.login()
        #expect(try other.resource("bank/balance", token: early).status == 200)
        second.revokeTokens()
        #expect(try other.resource("bank/balance", token: early).status == 401)
        let again = try other.login()
        clock.advance(seconds: 5)
        #expect(try other.resource("bank/balance", token: again).status == 401)
    }

    @Test("a check may be expired by hand")
    func expire() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        _ = try phone.pin("1234")
        server.expire(check: "PinCodeAttempts")
        #expect(try phone.preauthorize("PinCodeAttempts").status == 401)
    }

    @Test("the server's clock may be off, and then an assertion without the offset is over")
    func clockOffset() throws {
        let clock = ManualClock()
        let server = testServer(clock) { $0.clockOffset = 7200 }
        let phone = try TestPhone.registered(at: server)
        let success = try phone.pin("1234", scope: "accessRestricted")
        let shown = success.json?["successes"]?["clockSynchronization"]?["serverTimeStamp"]?.integer
        #expect(shown == clock.now + 7_200_000)
        let code = try phone.code(phone.authorize("accessRestricted"))
        let naive = try phone.assertion(jti: .string(code), expires: clock.now + 60_000)
        #expect(try phone.token(code: code, assertion: naive).status == 400)
        let shifted = try phone.assertion(jti: .string(code), expires: clock.now + 7_260_000)
        #expect(try phone.token(code: code, assertion: shifted).status == 200)
    }

    @Test("an unknown scope element is refused, or granted where a test wants that")
    func unknownScope() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        #expect(try phone.preauthorize("nonsense").json?["errorCode"] == "INVALID_SCOPE")
        server.configure { $0.grantsUnknownScope = true }
        #expect(try phone.preauthorize("nonsense").status == 200)
    }

    @Test("an answer for a check that the scope does not hold is a violation")
    func strayAnswer() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        _ = try phone.pin("1234", scope: "UserLogin")
        #expect(server.recorder.record.violations.count == 1)
    }
}
