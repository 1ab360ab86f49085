// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("Form login of WebSEAL")
struct WebSEALTests {
    private static let form = """
        <form method="POST" action="/pkmslogin.form"><input name="username"><input type="password" name="password">
        <input type="hidden" name="login-form-type" value="pwd"><input type="hidden" name="token" value="Un&#107;nown"></form>
        """
    private static let page = Portal.get(
        "/app/home", 200, form, set: ["PD-S-SESSION-ID=first; Path=/; Secure; HttpOnly"])

    private static func post(
        _ status: Int, _ body: String = "", set cookies: [String] = [], to location: String? = nil,
        _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        Portal.post(
            "/pkmslogin.form", status, body, set: cookies, to: location, sends: "PD-S-SESSION-ID=first",
            form: "token=Unknown&username=ann-u&password=pass%22word&login-form-type=pwd", place)
    }

    @Test("WebSEAL's 302 to the first requested address is a success, with the earlier session cookie or a new one")
    func redirect() async throws {
        let rig = Portal.rig([
            Self.page,
            Self.post(
                302, set: ["PD-S-SESSION-ID=second; Path=/; Secure", "LtpaToken2=t; Path=/"], to: Portal.address),
            Portal.get(sends: "PD-S-SESSION-ID=second; LtpaToken2=t"),
        ])
        let session = try await rig.logIn(Portal.login(.webSEAL))
        #expect(try rig.cookies(of: session) == "PD-S-SESSION-ID=second; LtpaToken2=t")
        let kept = Portal.rig([
            Self.page, Self.post(302, to: "/app/home"), Portal.get(sends: "PD-S-SESSION-ID=first"),
        ])
        let established = try await kept.logIn(Portal.login(.webSEAL))
        #expect(try kept.cookies(of: established) == "PD-S-SESSION-ID=first")
    }

    @Test("WebSEAL's 200 with login_success.html is verified at the challenged address")
    func successPage() async throws {
        let rig = Portal.rig([
            Self.page, Self.post(200, "<p>Your login was successful.</p>"), Portal.get(sends: "PD-S-SESSION-ID=first"),
        ])
        _ = try await rig.logIn(Portal.login(.webSEAL))
    }

    @Test("WebSEAL's redirect with TAM_OP=login leads to the form's address if the page is elsewhere")
    func elsewhere() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, to: "https://login.example.com/?TAM_OP=login&URL=%2Fapp"),
            Portal.post(
                "/pkmslogin.form", 302, set: ["PD-S-SESSION-ID=s; Path=/; Secure"], to: Portal.address, sends: nil,
                form: "username=ann-u&password=pass%22word&login-form-type=pwd"),
            Portal.get(sends: "PD-S-SESSION-ID=s"),
        ])
        _ = try await rig.logIn(Portal.login(.webSEAL))
    }

    @Test(
        "WebSEAL's form again, or its message of a wrong password, is a rejection",
        arguments: [form, "<p>HPDIA0200W Authentication failed.</p>", form + "<!-- hpdia0200w -->"])
    func wrong(_ body: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(200, body)])
        await rig.expectRejection(try Portal.login(.webSEAL))
    }

    @Test(
        "WebSEAL's locked account is reported as locked, even if the answer has the form",
        arguments: ["HPDIA0306W", "HPDIA0234W", "HPDIA0309W", "HPDIA0205W"])
    func locked(_ code: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(200, "<p>\(code)</p>\(Self.form)")])
        await rig.expectRejection(try Portal.login(.webSEAL), .accountLocked)
    }

    @Test("a password that WebSEAL calls expired is not sent again, and the reply says why")
    func expired() async throws {
        let rig = Portal.rig([Self.page, Self.post(200, "<p>HPDIA0204W</p>")])
        let failure = await rig.lose(try Portal.login(.webSEAL))
        #expect(failure.code == .rejected && failure.detail.hasPrefix("The password has expired"))
        #expect(rig.latches.keys == [Portal.key])
    }

    @Test(
        "WebSEAL's limit of sessions and its uncached request leave the outcome unknown",
        arguments: [(200, "Additional Login Denied"), (200, "0x38b9a41f"), (500, "Request Caching Failed 38cf013d")])
    func unknown(_ status: Int, _ body: String) async throws {
        let rig = Portal.rig([Self.page, Self.post(status, "<p>\(body)</p>")])
        _ = await rig.expectUnknown(try Portal.login(.webSEAL))
    }

    @Test("WebSEAL's redirect states the outcome by TAM_OP")
    func operations() async throws {
        func end(_ operation: String) async throws -> (LoginFailure, LoginRig) {
            let rig = Portal.rig([
                Self.page, Self.post(302, to: "https://login.example.com/?TAM_OP=\(operation)&X=1"),
            ])
            return (await rig.lose(try Portal.login(.webSEAL)), rig)
        }
        for (operation, code) in [
            ("login", LoginFailure.Code.rejected), ("acct_locked", .accountLocked),
            ("acct_inactivated", .accountLocked),
            ("passwd_exp", .rejected), ("too_many_sessions", .failed), ("error", .failed),
        ] {
            let (failure, rig) = try await end(operation)
            #expect(failure.code == code, "\(operation)")
            #expect(rig.latches.all.isEmpty == (code == .failed), "\(operation)")
        }
    }
}

@Suite("The preset `form`")
struct AnyLoginFormTests {
    private static let page = """
        <form action=/search><input name=q></form>
        <form method=post action="/login/?next=/app/home"><input type=hidden name=csrf value=t1><input name=user>
        <input type=password name=pass><button name=go value=1>Log in</button></form>
        """
    private static let form = "csrf=t1&user=ann-u&pass=pass%22word&go=1"

    private func response(
        _ status: Int, _ location: String? = nil, body: String? = nil, type: String = "text/html"
    ) throws -> ExaminedResponse {
        var fields: HTTPFields = [.contentType: type]
        fields[.location] = location
        return ExaminedResponse(
            status: status, fields: fields, body: body.map { Array($0.utf8) }, method: .get,
            url: try #require(WebURL(Portal.address)))
    }

    @Test("a login page needs no configuration: its form is filled in as a browser would")
    func login() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, to: "/login/?next=/app/home"),
            Portal.get("/login/", 200, Self.page, set: ["pre=1; Path=/"]),
            Portal.post("/login/", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "pre=1", form: Self.form),
            Portal.get(sends: "pre=1; sid=2"),
        ])
        let session = try await rig.logIn(Portal.login(.passwordForm))
        #expect(try rig.cookies(of: session) == "pre=1; sid=2")
        #expect(
            rig.steps.contains {
                $0.contains("the login form goes to /login/, the password to pass, the user's name to user")
            },
            "the step says what was recognised: \(rig.steps)")
    }

    @Test("the same form again after the submission is a rejection, and the value is not sent again")
    func rejected() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, Self.page),
            Portal.post("/login/", 200, Self.page, sends: nil, form: Self.form),
        ])
        await rig.expectRejection(try Portal.login(.passwordForm))
    }

    @Test("a redirect to an address with `login` in it after the submission is not a rejection")
    func redirectAfterwards() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, Self.page),
            Portal.post("/login/", 302, set: ["sid=2; Path=/"], to: "/login/done", sends: nil, form: Self.form),
            Portal.get("/login/done", 200, "<p>Hello</p>", sends: "sid=2"), Portal.get(sends: "sid=2"),
        ])
        _ = try await rig.logIn(Portal.login(.passwordForm))
    }

    @Test("nothing is sent to a form at another origin")
    func otherOrigin() async throws {
        let page =
            "<form method=post action='https://evil.example.com/'><input name=u><input type=password name=p></form>"
        let rig = Portal.rig([Portal.get("/app/home", 200, page)])
        _ = await rig.expectUnknown(try Portal.login(.passwordForm))
        #expect(!rig.requests.sent.contains { $0.method == .post })
    }

    @Test("a login form and a redirect within the origin towards a login page start a login")
    func detected() throws {
        let detector = GatewayDetector(.passwordForm)
        #expect(detector.examine(try response(200, body: Self.page), hasSession: false) == .challenged())
        #expect(detector.examine(try response(200), hasSession: false) == .needsBody)
        for location in ["/login/?next=/", "https://portal.example.com/users/sign_in", "/Special:UserLogin"] {
            #expect(detector.examine(try response(302, location), hasSession: false) == .challenged(), "\(location)")
        }
    }

    @Test(
        "other redirects, pages and data start no login",
        arguments: ["/home", "https://idp.example.com/login", "/search?q=login", "/home#login"])
    func passed(_ location: String) throws {
        let detector = GatewayDetector(.passwordForm)
        #expect(detector.examine(try response(302, location), hasSession: false) == .pass)
        #expect(detector.examine(try response(200, body: "<form><input name=q></form>"), hasSession: false) == .pass)
        let data = try response(200, body: Self.page, type: "application/json")
        #expect(detector.examine(data, hasSession: false) == .pass)
    }
}
