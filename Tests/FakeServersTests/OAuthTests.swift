// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

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
