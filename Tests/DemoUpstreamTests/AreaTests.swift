// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import DemoUpstream
import Testing

@Suite("the demonstration's areas")
struct AreaTests {
    private let clock: TestClock
    private let upstream: DemoUpstream
    private let form = ("Content-Type", "application/x-www-form-urlencoded")

    init() {
        let clock = TestClock()
        self.clock = clock
        upstream = DemoUpstream(now: { clock.now })
    }

    private func get(_ target: String, _ fields: [(name: String, value: String)] = []) -> DemoResponse {
        upstream.respond(to: DemoRequest("GET", target, fields: fields))
    }

    private func post(_ target: String, _ body: String, _ fields: [(name: String, value: String)]) -> DemoResponse {
        upstream.respond(to: DemoRequest("POST", target, fields: fields, body: Array(body.utf8)))
    }

    @Test("the index lists the areas, and other paths are not found")
    func index() {
        #expect(get("/").status == 200)
        #expect(get("/").text.contains("/mfp/api/adapters/bank/balance"))
        #expect(get("/nothing").status == 404)
    }

    @Test("the open area echoes the request without secrets")
    func open() {
        let echo = get("/open/a?b=c", [("Accept", "x/y"), ("Cookie", "secret=1")])
        #expect(echo.status == 200)
        #expect(echo.json?["path"] == "/open/a")
        #expect(echo.json?["query"] == "b=c")
        #expect(echo.json?["fields"] == [["Accept": "x/y"], ["Cookie": "<present>"]])
    }

    @Test("the Basic area accepts the right password only")
    func basic() {
        #expect(get("/basic/").field("WWW-Authenticate") == "Basic realm=\"Demo\", charset=\"UTF-8\"")
        #expect(get("/basic/", [("Authorization", "basic YW5uOmRlbW8=")]).status == 200)
        #expect(get("/basic/", [("Authorization", "Basic YW5uOng=")]).status == 401)
        #expect(get("/basic/", [("Authorization", "Basic !")]).status == 401)
    }

    @Test("the Digest area accepts a response once, for its own nonce and for that request")
    func digest() throws {
        let challenge = try #require(get("/digest/").field("WWW-Authenticate"))
        let nonce = try #require(ChallengeList([challenge]).challenges.first?["nonce"])
        func answer(_ nonce: String, _ target: String = "/digest/") -> DemoResponse {
            let key = sha256("ann:Demo:demo")
            let proof = sha256("\(key):\(nonce):00000001:c:auth:\(sha256("GET:/digest/"))")
            let value = """
                Digest username="ann", realm="Demo", nonce="\(nonce)", uri="/digest/", algorithm=SHA-256, qop=auth, \
                nc=00000001, cnonce="c", response="\(proof)"
                """
            return get(target, [("Authorization", value)])
        }
        #expect(answer(nonce, "/digest/other").status == 401)
        #expect(answer(nonce).status == 200)
        let again = answer(nonce)
        #expect(again.status == 401)
        #expect(again.field("WWW-Authenticate")?.hasSuffix("stale=true") == true)
        #expect(answer("made-up").status == 401)
    }

    @Test("the login page redirects to the original address, with a new session")
    func loginPage() throws {
        let page = get("/form/a?b=c")
        #expect(page.text.contains("j_security_check"))
        let before = try #require(cookie(page))
        let wrong = post("/form/j_security_check", "j_username=ann&j_password=x", [form, ("Cookie", before)])
        #expect(wrong.status == 200 && wrong.text.contains("Invalid username"))
        let right = post("/form/j_security_check", "j_username=ann&j_password=demo", [form, ("Cookie", before)])
        #expect(right.status == 303)
        #expect(right.field("Location") == "/form/a?b=c")
        let after = try #require(cookie(right))
        #expect(get("/form/a", [("Cookie", after)]).json?["path"] == "/form/a")
        #expect(get("/form/a", [("Cookie", before)]).text.contains("j_security_check"))
        #expect(post("/form/j_security_check", "j_username=ann&j_password=demo", [form]).status == 408)
    }

    @Test("the portal takes a password and then a token of the same visit, and calls a locked account locked")
    func portal() throws {
        #expect(get("/portal/x").text.contains("/portal/pkmslogin.form"))
        #expect(get("/portal/news").text.contains("pkmslogin.form"))
        let wrong = post("/portal/pkmslogin.form", "username=ann&password=x", [form])
        #expect(wrong.status == 200 && wrong.text.contains("HPDIA0200W"))
        let locked = post("/portal/pkmslogin.form", "username=bob&password=demo", [form])
        #expect(locked.status == 200 && locked.text.contains("locked"))
        let first = post("/portal/pkmslogin.form", "username=ann&password=demo", [form])
        #expect(first.status == 401)
        let (visit, text) = (try #require(cookie(first)), first.text)
        let start = try #require(text.firstRange(of: "token="))
        let token = text[start.upperBound...].prefix { $0.isHexDigit }
        #expect(post("/portal/token", "token=\(token)", [form]).status == 403)
        let second = post("/portal/token", "token=\(token)", [form, ("Cookie", visit)])
        let session = try #require(cookie(second))
        #expect(get("/portal/x", [("Cookie", session)]).json?["path"] == "/portal/x")
        #expect(post("/portal/token", "token=\(token)", [form, ("Cookie", visit)]).status == 403)
    }

    @Test("the ticket area has a scheme of its own")
    func ticket() {
        #expect(get("/ticket/").field("WWW-Authenticate") == "Ticket realm=\"Demo\"")
        #expect(get("/ticket/", [("Authorization", "Ticket demo")]).status == 200)
        #expect(get("/ticket/", [("Authorization", "Ticket other")]).status == 401)
    }

    @Test("a security check named by a resource is blocked after three wrong answers")
    func checks() throws {
        let json = ("Content-Type", "application/json")
        func login(_ pin: String) -> DemoResponse {
            post("/checks/login", #"{"challengeResponse":{"PinCode":{"pin":"\#(pin)"}}}"#, [json])
        }
        #expect(get("/checks/balance").json == ["challenges": ["PinCode": ["remainingAttempts": 3]]])
        let answer = login("1234")
        #expect(answer.status == 200)
        #expect(get("/checks/balance", [("Cookie", try #require(cookie(answer)))]).status == 200)
        #expect(get("/checks/balance", [("Cookie", "checks=made-up")]).status == 401)
        #expect(login("0").json == ["challenges": ["PinCode": ["remainingAttempts": 2]]])
        #expect(login("0").status == 401)
        #expect(login("0").status == 403)
        #expect(login("1234").status == 403)
        #expect(post("/checks/login", "{}", [json]).status == 400)
    }

    @Test("a token of the demonstration's OAuth 2 server is valid for five minutes", arguments: [true, false])
    func tokens(isInBody: Bool) throws {
        let grant = "grant_type=client_credentials"
        let basic = ("Authorization", "Basic \(Base64.encode("demo:demo%3Asecret%2B%25".utf8))")
        let answer =
            isInBody
            ? post("/oauth/token", "\(grant)&client_id=demo&client_secret=demo%3Asecret%2B%25", [form])
            : post("/oauth/token", grant, [form, basic])
        #expect(answer.json?["expires_in"] == 300)
        let token = try #require(answer.json?["access_token"]?.stringValue)
        #expect(get("/oauth/api/echo", [("Authorization", "Bearer \(token)")]).status == 200)
        clock.pass(seconds: 300)
        #expect(get("/oauth/api/echo", [("Authorization", "Bearer \(token)")]).status == 401)
        #expect(get("/oauth/api/echo").field("WWW-Authenticate") == "Bearer realm=\"api\"")
        let refused = get("/oauth/api/echo", [("Authorization", "Bearer made-up")])
        #expect(refused.field("WWW-Authenticate") == "Bearer realm=\"api\", error=\"invalid_token\"")
        #expect(post("/oauth/token", "\(grant)&client_id=demo&client_secret=x", [form]).status == 401)
        #expect(post("/oauth/token", "grant_type=password", [form, basic]).status == 400)
    }
}
