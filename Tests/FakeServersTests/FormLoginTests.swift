// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Testing

@Suite("form login as Tomcat has it")
struct FormLoginTests {
    let clock = ManualClock()
    let recorder = Recorder()
    let login: FormLogin

    init() {
        login = FormLogin(contextPath: "/form", clock: clock.clock, recorder: recorder)
    }

    private func ask(
        _ method: String, _ target: String, cookie: String? = nil, body: String = "", type: String? = nil
    ) -> FakeResponse {
        var request = FakeRequest(method, target, body: Array(body.utf8))
        if let cookie { request.fields.append(("Cookie", cookie)) }
        if let type { request.fields.append(("Content-Type", type)) }
        return login.respond(to: request) { inner in
            .text(200, "inside: \(inner.method) \(inner.target) \(String(decoding: inner.body, as: UTF8.self))")
        }
    }

    private func submit(_ cookie: String?, password: String = "demo") -> FakeResponse {
        ask(
            "POST", "/form/j_security_check", cookie: cookie, body: "j_username=ann&j_password=\(password)",
            type: "application/x-www-form-urlencoded")
    }

    @Test("a protected GET is answered with the login page, status 200, and a session")
    func loginPage() {
        let response = ask("GET", "/form/account")
        #expect(response.status == 200)
        #expect(response.text.contains("action=\"j_security_check\""))
        #expect(response.field("Set-Cookie")?.contains("; Path=/form; HttpOnly") == true)
        #expect(cookie(response).hasPrefix("JSESSIONID="))
        #expect(recorder.record.challenges == ["form": 1])
    }

    @Test("a right answer leads to the saved address by 303, under a new session identifier")
    func success() {
        let page = ask("GET", "/form/account?a=1")
        let redirect = submit(cookie(page))
        #expect(redirect.status == 303)
        #expect(redirect.field("Location") == "/form/account?a=1")
        #expect(cookie(redirect) != cookie(page))
        let session = cookie(redirect)
        #expect(ask("GET", "/form/account?a=1", cookie: session).text == "inside: GET /form/account?a=1 ")
        #expect(ask("GET", "/form/other", cookie: session).text == "inside: GET /form/other ")
        #expect(ask("GET", "/form/account", cookie: cookie(page)).text.contains("j_security_check"))
    }

    @Test("the saved request takes the place of the next one to its address, once")
    func savedRequest() {
        let page = ask("POST", "/form/pay", body: "amount=1")
        let session = cookie(submit(cookie(page)))
        #expect(ask("GET", "/form/pay", cookie: session).text == "inside: POST /form/pay amount=1")
        #expect(ask("GET", "/form/pay", cookie: session).text == "inside: GET /form/pay ")
    }

    @Test("a saved GET swallows the POST that comes first")
    func swallowedPost() {
        let page = ask("GET", "/form/pay")
        let session = cookie(submit(cookie(page)))
        #expect(ask("POST", "/form/pay", cookie: session, body: "amount=1").text == "inside: GET /form/pay ")
    }

    @Test("a body up to 4096 bytes is saved, a longer one is 403")
    func savedSize() {
        #expect(ask("POST", "/form/pay", body: String(repeating: "x", count: 4096)).status == 200)
        #expect(ask("POST", "/form/pay", body: String(repeating: "x", count: 4097)).status == 403)
    }

    @Test("a wrong password gets the error page with 200, and the right one may follow")
    func wrongPassword() {
        let page = ask("GET", "/form/account")
        let wrong = submit(cookie(page), password: "x")
        #expect(wrong.status == 200)
        #expect(wrong.text.contains("Invalid username or password"))
        #expect(!wrong.text.contains("j_security_check"))
        #expect(submit(cookie(page)).status == 303)
        #expect(recorder.record.wrongAnswers == ["form": 1])
        #expect(recorder.record.logins == ["form": 1])
        #expect(recorder.record.answerCount(to: "form") == 2)
    }

    @Test("a wrong password may get the form again, and too many of them a page that says locked")
    func otherPages() {
        login.configure {
            $0.isWrongAnsweredWithForm = true
            $0.locksAfter = 2
        }
        let page = ask("GET", "/form/account")
        #expect(submit(cookie(page), password: "x").text.contains("j_security_check"))
        #expect(submit(cookie(page), password: "x").text.contains("locked"))
        let right = submit(cookie(page))
        #expect(right.status == 200)
        #expect(right.text.contains("locked"))
    }

    @Test("a bare submission is 400, one too late or after a restart 408")
    func bareSubmission() {
        #expect(submit(nil).status == 400)
        let page = ask("GET", "/form/account")
        clock.advance(seconds: 120)
        #expect(submit(cookie(page)).status == 408)
        let second = ask("GET", "/form/account")
        login.dropSessions()
        #expect(submit(cookie(second)).status == 408)
    }

    @Test("a session ends after half an hour without a request, and by logout")
    func sessionEnd() {
        let session = cookie(submit(cookie(ask("GET", "/form/account"))))
        clock.advance(seconds: 1799)
        #expect(ask("GET", "/form/x", cookie: session).text.hasPrefix("inside"))
        clock.advance(seconds: 1800)
        #expect(ask("GET", "/form/x", cookie: session).text.contains("j_security_check"))
        let other = cookie(submit(cookie(ask("GET", "/form/account"))))
        login.logout(FakeRequest("GET", "/form/logout", fields: [("Cookie", "a=b; \(other)")]))
        #expect(ask("GET", "/form/x", cookie: other).text.contains("j_security_check"))
    }
}

@Suite("a gateway in front of MobileFirst")
struct GatewayScriptTests {
    @Test("the form on preauthorize with 200, then the login, then preauthorize itself", arguments: [303, 302])
    func preauthorize(status: Int) throws {
        let server = testServer { $0.guarded = [.preauthorize] }
        server.gateway.configure { $0.successStatus = status }
        var phone = try TestPhone.registered(at: server)
        let form = try phone.preauthorize("")
        #expect(form.status == 200)
        #expect(form.text.contains("j_security_check"))
        var login = FakeRequest(
            "POST", "/mfp/api/preauth/v1/j_security_check",
            fields: [("Content-Type", "application/x-www-form-urlencoded")],
            body: Array("j_username=ann&j_password=demo".utf8))
        login.fields.append(("Cookie", cookie(form)))
        #expect(server.isResponsible(for: login))
        let redirect = server.respond(to: login)
        #expect(redirect.status == status)
        #expect(redirect.field("Location") == "/mfp/api/preauth/v1/preauthorize")
        let session = cookie(redirect)
        #expect(session != cookie(form))
        let id = phone.id
        phone = try TestPhone { request in
            var request = request
            request.fields.append(("Cookie", session))
            return server.respond(to: request)
        }
        phone.id = id
        // Tomcat puts the saved request in the place of the first one to its address.
        #expect(try phone.preauthorize("PinCodeAttempts").status == 200)
        #expect(try phone.preauthorize("PinCodeAttempts").status == 401)
        #expect(server.recorder.record.logins["gateway"] == 1)
    }

    @Test("the form on resources only")
    func resource() throws {
        let server = testServer { $0.guarded = [.resource] }
        let phone = try TestPhone.registered(at: server)
        #expect(try phone.preauthorize("").status == 200)
        #expect(try phone.resource("bank/balance", token: nil).text.contains("j_security_check"))
    }
}

/// Returns the `name=value` of the cookie that a response sets.
func cookie(_ response: FakeResponse) -> String {
    String((response.field("Set-Cookie") ?? "").prefix { $0 != ";" })
}
