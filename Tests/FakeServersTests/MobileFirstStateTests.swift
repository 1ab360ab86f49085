// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("self registration")
struct RegistrationTests {
    @Test("both alphabets of base64 are understood", arguments: [true, false])
    func alphabets(isURLSafe: Bool) throws {
        var key = try TestKey.shared.get()
        key.isURLSafe = isURLSafe
        let server = testServer()
        let phone = try TestPhone.registered(at: server, key: key)
        #expect(server.clients == [phone.id])
        #expect(server.recorder.record.registrations == 1)
    }

    @Test("the client's identifier is the last segment of Location")
    func location() throws {
        let server = testServer()
        var phone = try TestPhone { server.respond(to: $0) }
        let response = try phone.register()
        #expect(response.status == 201)
        #expect(response.field("Location") == "/mfp/api/registration/clients/\(server.clients[0])")
    }

    @Test("a signature by another key is refused")
    func wrongKey() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        var parts = try phone.key.sign(phone.registration, kid: nil)
        parts[2] = try TestKey().sign(phone.registration, kid: nil)[2]
        let response = server.respond(to: phone.registrationRequest("POST", "", parts))
        #expect(response.status == 400)
        #expect(server.clients == [])
        #expect(server.recorder.record.violations.count == 1)
    }

    @Test("a changed payload is refused")
    func changedPayload() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        var parts = try phone.key.sign(phone.registration, kid: nil)
        parts[1] = Base64.encodeURL((["device": ["id": "other"]] as JSON).bytes)
        #expect(server.respond(to: phone.registrationRequest("POST", "", parts)).status == 400)
    }

    @Test("an algorithm other than RS256, or a kid at the first registration, is refused")
    func wrongHeader() throws {
        let server = testServer()
        let phone = try TestPhone { server.respond(to: $0) }
        let other = try phone.key.sign(phone.registration, kid: nil, algorithm: "RS512")
        #expect(server.respond(to: phone.registrationRequest("POST", "", other)).status == 400)
        let kid = try phone.key.sign(phone.registration, kid: "me")
        #expect(server.respond(to: phone.registrationRequest("POST", "", kid)).status == 400)
    }

    @Test(
        "a payload that lacks something is refused",
        arguments: [
            ["application": ["id": "a", "clientPlatform": "web"]],
            ["device": ["id": "d"], "application": ["clientPlatform": "web"]],
            ["device": ["id": "d"], "application": ["id": "a", "clientPlatform": "linux", "version": "1"]],
            ["device": ["id": "d"], "application": ["id": "a", "clientPlatform": "ios"]],
        ] as [JSON])
    func incomplete(payload: JSON) throws {
        let server = testServer()
        var phone = try TestPhone { server.respond(to: $0) }
        #expect(try phone.register(payload).status == 400)
    }

    @Test("an update needs the client's key and its kid")
    func update() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let right = try phone.key.sign(phone.registration, kid: phone.id)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", right)).status == 200)
        let bare = try phone.key.sign(phone.registration, kid: nil)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", bare)).status == 400)
        let foreign = try TestKey().sign(phone.registration, kid: phone.id)
        #expect(server.respond(to: phone.registrationRequest("PUT", "/\(phone.id)", foreign)).status == 400)
        let unknown = server.respond(to: phone.registrationRequest("PUT", "/nobody", right))
        #expect(unknown.json?["errorCode"] == "INVALID_CLIENT_ID")
    }

    @Test("a client reads its own registration with an assertion")
    func read() throws {
        let server = testServer()
        let phone = try TestPhone.registered(at: server)
        let path = "/mfp/api/registration/v1/self/\(phone.id)"
        let query = "client_assertion_type=\(percentEncoded(assertionType))&client_assertion="
        let assertion = try phone.assertion(jti: .null)
        let response = server.respond(to: FakeRequest("GET", "\(path)?\(query)\(assertion)"))
        #expect(response.json?["registration"]?["device"]?["id"] == "d1")
        #expect(server.respond(to: FakeRequest("GET", "\(path)?\(query)x.y.z")).status == 401)
    }
}

/// Each row of the table of states, and the trace of the sample adapter.
@Suite("the states of a security check")
struct SecurityCheckStateTests {
    private let check = SecurityCheck.pinCodeAttempts()
    private let right: JSON = ["pin": "1234"]
    private let wrong: JSON = ["pin": "0000"]
    private let blocked = SecurityCheckState.Outcome.failure(["failure": "Account blocked"])

    private func challenge(_ remaining: Int64, _ message: String? = nil) -> SecurityCheckState.Outcome {
        .challenge(
            ["errorMsg": message.map(JSON.string) ?? .null, "remainingAttempts": .integer(remaining)],
            remaining: remaining)
    }

    private let hint = "Pin code is not valid. Hint: 1234"

    /// Returns a check after these answers at time 0.
    private func state(after answers: [JSON?], _ check: SecurityCheck? = nil) -> SecurityCheckState {
        var state = SecurityCheckState()
        for answer in answers { _ = state.handle(answer, for: check ?? self.check, now: 0) }
        return state
    }

    @Test("expired, no answer: a challenge with the full count")
    func expiredBare() {
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(3))
    }

    @Test("expired, wrong answer: one attempt is used at once")
    func expiredWrong() {
        var state = SecurityCheckState()
        #expect(state.handle(wrong, for: check, now: 0) == challenge(2, hint))
    }

    @Test("expired, wrong answer, one attempt in all: blocked at once")
    func expiredWrongSingle() {
        var state = SecurityCheckState()
        let check = SecurityCheck.pinCodeAttempts(SecurityCheck.Properties(maxAttempts: 1, blocked: 60))
        #expect(state.handle(wrong, for: check, now: 0) == blocked)
    }

    @Test("attempting, no answer: the counter stays")
    func attemptingBare() {
        var state = state(after: [wrong])
        #expect(state.handle(nil, for: check, now: 0) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 0) == challenge(2, hint))
    }

    @Test("attempting, wrong, some left: one fewer")
    func attemptingWrong() {
        var state = state(after: [nil, wrong])
        #expect(state.handle(wrong, for: check, now: 0) == challenge(1, hint))
    }

    @Test("attempting, wrong, none left, with a time to block: failure")
    func attemptingToBlocked() {
        var state = state(after: [wrong, wrong])
        #expect(state.handle(wrong, for: check, now: 0) == blocked)
    }

    @Test("attempting, wrong, none left, without a time to block: a fresh challenge with the full count")
    func defaultConfiguration() {
        let check = SecurityCheck.pinCodeAttempts(SecurityCheck.Properties())
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(1))
        for _ in 0..<5 { #expect(state.handle(wrong, for: check, now: 0) == challenge(1, hint)) }
        #expect(state.handle(right, for: check, now: 0) == .success(.empty))
    }

    @Test("blocked: failure whatever comes, even the right answer, until the time is over; then expired")
    func blockedTime() {
        var state = state(after: [wrong, wrong, wrong])
        #expect(state.handle(right, for: check, now: 0) == blocked)
        #expect(state.handle(nil, for: check, now: 59_999) == blocked)
        #expect(state.isBlocked(for: check, now: 59_999))
        #expect(!state.isBlocked(for: check, now: 60_000))
        #expect(state.handle(nil, for: check, now: 60_000) == challenge(3))
    }

    @Test("blocked: credentials are not looked at")
    func blockedLooksAway() {
        var state = state(after: [wrong, wrong, wrong])
        var check = check
        check.validate = { _ in
            Issue.record("the answer was looked at")
            return .right(.empty)
        }
        #expect(state.handle(right, for: check, now: 1) == blocked)
    }

    @Test("a right answer succeeds from every state but blocked")
    func rightAnswer() {
        for answers in [[], [nil], [wrong, wrong], [right]] as [[JSON?]] {
            var state = state(after: answers)
            #expect(state.handle(right, for: check, now: 0) == .success(.empty))
        }
    }

    @Test("success, no answer: success until its time is over")
    func successTime() {
        var state = state(after: [right])
        #expect(state.handle(nil, for: check, now: 59_999) == .success(.empty))
        #expect(state.secondsLeft(for: check, now: 45_000) == 15)
        #expect(state.isSuccess(for: check, now: 59_999))
        #expect(!state.isSuccess(for: check, now: 60_000))
        #expect(state.handle(nil, for: check, now: 60_000) == challenge(3))
    }

    @Test("success, wrong answer: the success is lost and one attempt used")
    func successWrong() {
        var state = state(after: [right])
        #expect(state.handle(wrong, for: check, now: 0) == challenge(2, hint))
        #expect(!state.isSuccess(for: check, now: 0))
    }

    @Test("attempting: the counter restarts when the window from the first challenge is over")
    func attemptingWindow() {
        var state = state(after: [nil])
        #expect(state.handle(wrong, for: check, now: 100_000) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 119_999) == challenge(2, hint))
        #expect(state.handle(nil, for: check, now: 120_000) == challenge(3))
    }

    @Test("a remembered user succeeds without a challenge, counted from the login; logout forgets him")
    func rememberMe() {
        let check = SecurityCheck.userLogin(SecurityCheck.Properties(maxAttempts: 3, success: 60, rememberMe: 600))
        let answer: JSON = ["username": "ann", "password": "ann", "rememberMe": true]
        var state = state(after: [answer], check)
        guard case .success(let details) = state.handle(nil, for: check, now: 300_000) else {
            Issue.record("a challenge in spite of the memory")
            return
        }
        #expect(details["user"]?["id"] == "ann")
        #expect(state.handle(nil, for: check, now: 539_000) == .success(details))
        // The success of 539 s came from the memory, which it did not renew.
        #expect(state.handle(nil, for: check, now: 600_000) == challenge(3))
        var other = self.state(after: [answer], check)
        other.logout()
        #expect(other.handle(nil, for: check, now: 1) == challenge(3))
        var late = self.state(after: [answer], check)
        #expect(late.handle(nil, for: check, now: 600_000) == challenge(3))
    }

    @Test("logout: expired, from every state")
    func logout() {
        for answers in [[right], [wrong], [wrong, wrong, wrong]] as [[JSON?]] {
            var state = state(after: answers)
            state.logout()
            #expect(state.handle(nil, for: check, now: 0) == challenge(3))
        }
    }

    @Test("the trace of the sample: 3, 2, 1, blocked, blocked though right, after its time 3 again")
    func trace() {
        var state = SecurityCheckState()
        #expect(state.handle(nil, for: check, now: 0) == challenge(3))
        #expect(state.handle(wrong, for: check, now: 1000) == challenge(2, hint))
        #expect(state.handle(wrong, for: check, now: 2000) == challenge(1, hint))
        #expect(state.handle(wrong, for: check, now: 3000) == blocked)
        #expect(state.handle(right, for: check, now: 4000) == blocked)
        #expect(state.handle(nil, for: check, now: 63_000) == challenge(3))
    }
}
