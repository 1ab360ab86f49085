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
