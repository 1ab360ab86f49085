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

@Suite("codes and tokens")
struct TokenTests {
    let clock = ManualClock()
    let server: FakeMobileFirst
    let phone: TestPhone

    init() throws {
        server = testServer(clock)
        phone = try TestPhone.registered(at: server)
        #expect(try phone.pin("1234", scope: "accessRestricted").status == 200)
    }

    @Test("a check that has lapsed since makes the redirect an error")
    func lapsed() throws {
        clock.advance(seconds: 60)
        let location = try phone.authorize("accessRestricted").field("Location")
        #expect(location?.hasPrefix("http://mfpredirecturi?error=") == true)
    }

    @Test("a redirect address that is not the client's is refused, its own web address is not")
    func redirectAddress() throws {
        #expect(try phone.authorize("accessRestricted", redirect: "http://evil").status == 400)
        let web = "http://x/mfp/api/az/v1/authorization/redirect/\(phone.id)"
        let location = try phone.authorize("accessRestricted", redirect: web).field("Location")
        #expect(location?.hasPrefix("\(web)?code=") == true)
        let follow = server.respond(to: FakeRequest("GET", String(try #require(location).dropFirst(8))))
        #expect(follow.json?["code"]?.string?.isEmpty == false)
    }

    @Test("a code is good once")
    func codeOnce() throws {
        let code = try phone.code(phone.authorize("accessRestricted"))
        #expect(try phone.token(code: code).status == 200)
        let second = try phone.token(code: code)
        #expect(second.status == 400)
        #expect(second.json?["error"] == "invalid_grant")
    }

    @Test("a code is bound to its client, its address and its minute")
    func codeBound() throws {
        let code = try phone.code(phone.authorize("accessRestricted"))
        let other = try TestPhone.registered(at: server)
        #expect(try other.token(code: code).json?["error"] == "invalid_grant")
        let second = try phone.code(phone.authorize("accessRestricted"))
        #expect(try phone.token(code: second, redirect: "https://mfpredirecturi").json?["error"] == "invalid_grant")
        let third = try phone.code(phone.authorize("accessRestricted"))
        clock.advance(seconds: 60)
        #expect(try phone.token(code: third).json?["error"] == "invalid_grant")
    }

    @Test("an assertion must be the client's own, for this code, and fresh by the server's clock in milliseconds")
    func assertions() throws {
        let code = try phone.code(phone.authorize("accessRestricted"))
        let jti = JSON.string(code)
        let now = clock.now
        let stranger = TestPhone.stranger(to: phone, key: try TestKey())
        let wrong = [
            try phone.assertion(jti: .null), try phone.assertion(jti: jti, expires: now),
            try phone.assertion(jti: jti, expires: (now + 60_000) / 1000),
            try phone.assertion(jti: jti, issuer: "com.other$ios$1.0"), try phone.assertion(jti: jti, subject: "x"),
            try phone.assertion(jti: jti, kid: "x"), try stranger.assertion(jti: jti), "a.b", "",
        ]
        for assertion in wrong {
            let response = try phone.token(code: code, assertion: assertion)
            #expect(response.status == 400)
            #expect(response.json?["error"] == "invalid_client")
        }
        let right = try phone.assertion(jti: jti, expires: now + 60_000)
        #expect(try phone.token(code: code, assertion: right).status == 200)
    }

    @Test("a token lives as long as the shortest check of its scope, at most an hour")
    func life() throws {
        clock.advance(seconds: 20)
        let response = try phone.token(code: phone.code(phone.authorize("accessRestricted")))
        #expect(response.json?["expires_in"] == 40)
        let free = try phone.token(code: phone.code(phone.authorize("")))
        #expect(free.json?["expires_in"] == 3600)
    }

    @Test("a resource says what a token lacks: all, its life, its scope")
    func resourceFilter() throws {
        let token = try phone.freshToken(scope: "accessRestricted")
        #expect(try phone.resource("bank/balance", token: token).status == 200)
        let unknown = try phone.resource("bank/balance", token: "x")
        #expect(unknown.status == 401)
        #expect(unknown.field("WWW-Authenticate") == "Bearer error=\"invalid_token\"")
        let narrow = try phone.resource("bank/balance", token: try phone.freshToken(scope: ""))
        #expect(narrow.status == 403)
        #expect(
            narrow.field("WWW-Authenticate")
                == "Bearer error=\"insufficient_scope\", scope=\"RegisteredClient accessRestricted\"")
        #expect(try phone.resource("bank/open", token: token).status == 200)
        clock.advance(seconds: 60)
        #expect(try phone.resource("bank/balance", token: token).status == 401)
    }

    @Test("logout puts a check back and leaves tokens alone; a heartbeat needs an assertion")
    func logout() throws {
        let token = try phone.freshToken(scope: "accessRestricted")
        let assertion = try phone.assertion(jti: .null)
        let fields = [("client_assertion", assertion), ("client_assertion_type", assertionType)]
        #expect(try phone.form("preauth/v1/heartbeat", fields).status == 200)
        #expect(try phone.form("preauth/v1/heartbeat", []).status == 401)
        #expect(
            try phone.form("preauth/v1/logout", fields + [("security_check", "PinCodeAttempts")]).status == 200)
        #expect(server.recorder.record.logouts == ["PinCodeAttempts"])
        #expect(try phone.preauthorize("accessRestricted").status == 401)
        #expect(try phone.resource("bank/balance", token: token).status == 200)
    }

    @Test("a confidential client: right, wrong secret, scope not allowed, no scope")
    func confidential() throws {
        server.configure {
            $0.confidentialClients = [ConfidentialClient(id: "d", secret: "s", allowedScope: "accessRestricted send*")]
        }
        func ask(_ secret: String, _ scope: String?) throws -> FakeResponse {
            let fields = [("grant_type", "client_credentials")] + (scope.map { [("scope", $0)] } ?? [])
            return try phone.form("az/v1/token", fields, basic: secret)
        }
        let right = try ask("d:s", "accessRestricted sendMessage")
        #expect(right.status == 200)
        #expect(right.json?["scope"] == "accessRestricted sendMessage")
        #expect(try phone.resource("bank/balance", token: right.json?["access_token"]?.string).status == 200)
        #expect(try ask("d:x", "accessRestricted").status == 401)
        #expect(try ask("d:s", "admin").status == 403)
        #expect(try ask("d:s", nil).json?["scope"] == "RegisteredClient")
        #expect(try phone.form("az/v1/token", [("grant_type", "password")], basic: "d:s").status == 400)
    }
}

extension TestPhone {
    /// Returns another phone that claims to be that client but has another key.
    fileprivate static func stranger(to phone: TestPhone, key: TestKey) -> TestPhone {
        var phone = phone
        phone.key = key
        return phone
    }
}

@Suite("the fake OAuth 2 server")
struct OAuthTests {
    let clock = ManualClock()
    let upstream: FakeUpstream

    init() {
        upstream = FakeUpstream(clock: clock.clock)
    }

    private func ask(_ form: String, basic: String? = "demo:demo%3Asecret%2B%25") -> FakeResponse {
        var fields = [(name: "Content-Type", value: "application/x-www-form-urlencoded")]
        if let basic { fields.append((name: "Authorization", value: "Basic \(Base64.encode(Array(basic.utf8)))")) }
        return upstream.respond(to: FakeRequest("POST", "/oauth/token", fields: fields, body: Array(form.utf8)))
    }

    private func get(_ path: String, _ token: String?) -> FakeResponse {
        let fields = token.map { [(name: "Authorization", value: "Bearer \($0)")] } ?? []
        return upstream.respond(to: FakeRequest("GET", path, fields: fields))
    }

    private func issued(_ response: FakeResponse) -> String? { response.json?["access_token"]?.string }

    @Test("a token opens what its scope covers, until it ends")
    func token() throws {
        #expect(get("/oauth/api/echo", nil).field("WWW-Authenticate") == "Bearer realm=\"api\"")
        let token = try #require(issued(ask("grant_type=client_credentials&scope=read")))
        #expect(get("/oauth/api/echo", token).status == 200)
        let admin = get("/oauth/api/admin/echo", token)
        #expect(admin.status == 403 && admin.field("WWW-Authenticate")?.contains("scope=\"admin\"") == true)
        clock.advance(seconds: 301)
        let late = get("/oauth/api/echo", token)
        #expect(late.status == 401 && late.field("WWW-Authenticate")?.contains("invalid_token") == true)
    }

    @Test("identifier and secret are decoded as a form's, and a wrong one is 401")
    func client() {
        #expect(ask("grant_type=client_credentials").status == 200)
        #expect(
            ask("grant_type=client_credentials&client_id=demo&client_secret=demo%3Asecret%2B%25", basic: nil).status
                == 200)
        for wrong in ["demo:wrong", "demo:demo:secret+%", "other:x"] {
            let response = ask("grant_type=client_credentials", basic: wrong)
            #expect(response.status == 401 && response.json?["error"] == "invalid_client")
        }
        #expect(upstream.recorder.record.wrongAnswers["oauth"] == 3)
    }

    @Test("a refresh token is good once; used again, it takes all that came of it along")
    func rotation() throws {
        let first = upstream.oauth.issueRefreshToken()
        let answer = ask("grant_type=refresh_token&refresh_token=\(first)")
        let second = try #require(answer.json?["refresh_token"]?.string)
        let token = try #require(issued(answer))
        #expect(get("/oauth/api/echo", token).status == 200)
        #expect(ask("grant_type=refresh_token&refresh_token=\(first)").json?["error"] == "invalid_grant")
        #expect(ask("grant_type=refresh_token&refresh_token=\(second)").json?["error"] == "invalid_grant")
        #expect(get("/oauth/api/echo", token).status == 401)
    }

    @Test("without rotation a refresh token serves again and again")
    func withoutRotation() {
        upstream.oauth.configure { $0.rotates = false }
        let token = upstream.oauth.issueRefreshToken()
        for _ in 0..<3 { #expect(ask("grant_type=refresh_token&refresh_token=\(token)").status == 200) }
    }

    @Test("what a client must not send is noticed")
    func violations() {
        _ = ask("grant_type=client_credentials&client_secret=x")
        _ = ask("grant_type=client_credentials&grant_type=password")
        #expect(upstream.recorder.record.violations.count == 2)
    }
}
