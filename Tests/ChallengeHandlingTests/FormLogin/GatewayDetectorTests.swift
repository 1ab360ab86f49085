// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Detection of a gateway's login page")
struct GatewayDetectorTests {
    private static let form = #"<form method="post" action="j_security_check"><input name="j_username"></form>"#
    private static let html: HTTPFields = [.contentType: "text/html; charset=UTF-8"]

    private func examine(
        _ rules: GatewayRules = .jSecurityCheck, _ status: Int = 200, _ fields: HTTPFields = html, _ body: String?,
        method: HTTPRequest.Method = .get
    ) throws -> Challenge {
        let response = ExaminedResponse(
            status: status, fields: fields, body: body.map { Array($0.utf8) }, method: method,
            url: try #require(WebURL("https://www.example.com/app/home")))
        let verdict = GatewayDetector(rules).examine(response, hasSession: false)
        #expect(GatewayDetector(rules).examine(response, hasSession: true) == verdict)
        return verdict
    }

    private func matching(_ matcher: ResponseMatcher) -> GatewayRules {
        GatewayRules(detect: [matcher], steps: [])
    }

    @Test("a page with a form's action that ends in j_security_check is a login page, whatever its status")
    func javaEE() throws {
        for status in [200, 401, 403, 404, 500, 503] {
            #expect(try examine(.jSecurityCheck, status, nil) == .needsBody)
            #expect(try examine(.jSecurityCheck, status, Self.form) == .challenged())
        }
        #expect(try examine("<form action='/app/J_Security_Check;jsessionid=A?x=1'>") == .challenged())
        #expect(try examine(.jSecurityCheck, 200, [.contentType: "application/xhtml+xml"], Self.form) == .challenged())
        #expect(try examine(.jSecurityCheck, 200, Self.html, Self.form, method: .post) == .challenged())
    }

    @Test(
        "a page that only mentions the form's action is not a login page",
        arguments: [
            "<h1>Down for maintenance</h1>", "<script>location = 'j_security_check'</script>",
            "<!-- \(form) -->", "<p>j_security_check</p>",
            "<form action='/search'><input name='j_security_check'></form>",
            "<form action='/j_security_check/help'>", "<a href='j_security_check'>", "",
        ])
    func mentioned(_ body: String) throws {
        for status in [200, 401, 500, 503] { #expect(try examine(.jSecurityCheck, status, body) == .pass) }
    }

    @Test(
        "a value of a JSON body is evidence: a string by its text, other values by themselves",
        arguments: [
            (#"{"error":{"code":"NOT_LOGGED_IN"}}"#, "/error/code", "logged_in", true),
            (#"{"error":{"code":"OTHER"}}"#, "/error/code", "logged_in", false),
            (#"{"ok":false}"#, "/ok", "false", true), (#"{"ok":true}"#, "/ok", "false", false),
            (#"{"code":1}"#, "/code", "1", true), (#"{"code":11}"#, "/code", "1", false),
            (#"{"error":"x"}"#, "/error", nil, true), (#"{"error":null}"#, "/error", nil, false),
            (#"[{"errors":["no"]}]"#, "/0/errors/0", "no", true), (#"{"error":{"a":1}}"#, "/error", "a", false),
            (#"{"error":"x""#, "/error", nil, false), ("", "/error", nil, false),
        ] as [(String, String, String?, Bool)])
    func json(body: String, pointer: String, text: String?, isEvidence: Bool) throws {
        let matcher = ResponseMatcher(json: [JSONMatcher(pointer: try #require(JSONPointer(pointer)), text: text)])
        let fields: HTTPFields = [.contentType: "application/json; charset=utf-8"]
        #expect(try examine(matching(matcher), 200, fields, nil) == .needsBody)
        #expect(try examine(matching(matcher), 200, fields, body) == (isEvidence ? .challenged() : .pass))
        #expect(try examine(matching(matcher), 200, Self.html, nil) == .pass, "a page is no JSON")
    }

    @Test("the body of a response is requested only if it can be a whole page")
    func types() throws {
        for type in ["application/json", "text/plain", "image/png", "text/event-stream", "text/htmlx"] {
            #expect(try examine(.jSecurityCheck, 200, [.contentType: type], nil) == .pass)
        }
        #expect(try examine(.jSecurityCheck, 200, [:], nil) == .pass)
        for status in [204, 205, 206, 304] { #expect(try examine(.jSecurityCheck, status, nil) == .pass) }
        #expect(try examine(.jSecurityCheck, 200, Self.html, nil, method: .head) == .pass)
        #expect(try examine(.jSecurityCheck, 200, [.contentType: "TEXT/HTML"], nil) == .needsBody)
    }

    @Test("Tomcat's 403 for a request too large to be saved is a challenge, another 403 is not")
    func tooLarge() throws {
        let text = "The request body was too large to be cached during the authentication process"
        #expect(try examine(.jSecurityCheck, 403, "<p>\(text)</p>") == .challenged())
        #expect(try examine(.jSecurityCheck, 200, "<p>\(text)</p>") == .pass)
        #expect(try examine(.jSecurityCheck, 403, "<p>Forbidden</p>") == .pass)
    }

    @Test("Liberty's redirect is detected by its cookie, but not by the removal of the cookie")
    func liberty() throws {
        func redirect(_ cookie: String) throws -> Challenge {
            try examine(.jSecurityCheck, 302, [.location: "/app/login.jsp", .setCookie: cookie], nil)
        }
        #expect(try redirect("WASReqURL=https:///app/home; Path=/; HttpOnly") == .challenged())
        #expect(try redirect("WASReqURL=; Path=/; Expires=Thu, 01 Dec 1994 16:00:00 GMT") == .pass)
        #expect(try redirect("WASReqURL=x; Max-Age=0") == .pass)
        #expect(try redirect("JSESSIONID=1") == .pass)
    }

    @Test("WebSEAL's page is detected by its form or by TAM_OP=login, not by another operation")
    func webSEAL() throws {
        let form = #"<form method="POST" action="/pkmslogin.form?token=Unknown">"#
        #expect(try examine(.webSEAL, 200, form) == .challenged())
        #expect(try examine(.webSEAL, 200, "<script>'/pkmslogin.form'</script>") == .pass)
        func redirect(_ query: String) throws -> Challenge {
            try examine(.webSEAL, 302, [.location: "https://login.example.com/page?\(query)#f"], nil)
        }
        #expect(try redirect("TAM_OP=login&USERNAME=unauthenticated") == .challenged())
        #expect(try redirect("ERROR_CODE=0x00000000&TAM_OP=login") == .challenged())
        #expect(try redirect("TAM_OP=login_success") == .pass)
        #expect(try redirect("URL=TAM_OP%3Dlogin") == .pass)
        #expect(try examine(.webSEAL, 500, "<p>Request Caching Failed 0x38CF013D</p>") == .challenged())
        #expect(try examine(.webSEAL, 500, "<p>Internal Error</p>") == .pass)
    }

    @Test("a matcher needs all its conditions, without regard to case, and any matcher is enough")
    func signs() throws {
        let server = try #require(HTTPField.Name("Server"))
        let matcher = ResponseMatcher(
            statuses: [200, 403], fields: [FieldMatcher(name: server, contains: "webseal")],
            bodyContains: ["PLEASE log in"], contentTypes: ["text/plain"])
        let fields: HTTPFields = [.contentType: "text/plain", server: "IBM WebSEAL/9"]
        #expect(try examine(matching(matcher), 200, fields, "Oh, please LOG in now") == .challenged())
        #expect(try examine(matching(matcher), 200, fields, nil) == .needsBody)
        #expect(try examine(matching(matcher), 200, fields, "please log out") == .pass)
        #expect(try examine(matching(matcher), 404, fields, nil) == .pass)
        #expect(try examine(matching(matcher), 200, [.contentType: "text/plain"], nil) == .pass)
        #expect(
            try examine(matching(matcher), 200, [.contentType: "text/html", server: "webseal"], nil) == .pass)
        var rules = matching(matcher)
        rules.detect.append(ResponseMatcher(statuses: [302], redirectTo: ["/Login"]))
        #expect(try examine(rules, 302, [.location: "https://www.example.com/app/login.html"], nil) == .challenged())
        #expect(try examine(rules, 302, [.location: "/home"], nil) == .pass)
        #expect(try examine(rules, 201, [.location: "/login"], nil) == .pass)
        let cookie = matching(ResponseMatcher(fields: [FieldMatcher(name: server)], cookies: ["a", "b"]))
        let set = HTTPFields([
            HTTPField(name: .setCookie, value: "a=1"), HTTPField(name: .setCookie, value: "b=2; Path=/"),
            HTTPField(name: server, value: "x"),
        ])
        #expect(try examine(cookie, 418, set, nil) == .challenged())
        #expect(try examine(cookie, 418, [.setCookie: "a=1", server: "x"], nil) == .pass)
    }

    @Test("a login page can be detected by names of inputs, which must be in one form")
    func formFields() throws {
        let rules = matching(ResponseMatcher(formAction: "/login", formFields: ["user", "pass"]))
        let form = "<form action=/login><input name=user><input name=pass></form>"
        #expect(try examine(rules, 200, form) == .challenged())
        #expect(
            try examine(
                rules, 200, "<form action=/login><input name=user></form><form action=/x><input name=pass></form>")
                == .pass)
    }
}

extension GatewayDetectorTests {
    fileprivate func examine(_ body: String) throws -> Challenge { try examine(.jSecurityCheck, 200, body) }

    fileprivate func examine(_ rules: GatewayRules, _ status: Int, _ body: String?) throws -> Challenge {
        try examine(rules, status, [.contentType: "text/html; charset=UTF-8"], body)
    }
}

@Suite("Confirmation of a gateway's session")
struct GatewayConfirmationTests {
    private func session() throws -> Session {
        var jar = CookieJar()
        jar.store("sid=1; Path=/", from: try #require(WebURL(Portal.address)), now: LoginRig.now)
        return Session(cookies: SessionCookies(jar))
    }

    private func confirm(
        _ rig: LoginRig, proof: String? = nil, _ session: Session? = nil
    ) async throws -> SessionConfirmation {
        let confirmation = try await Portal.login(proof: proof).confirm(
            session ?? self.session(), rig.conversation)
        #expect(rig.requests.missing.isEmpty && rig.credentials.count == 0)
        return confirmation
    }

    @Test("a gateway's session is confirmed by one request to `prove-at`: only the login page and 401 end it")
    func proveAt() async throws {
        let proof = "\(Portal.origin)/whoami"
        for (status, body, expected) in [
            (200, "<p>ann</p>", SessionConfirmation.stillGood), (403, "", .stillGood), (404, "", .stillGood),
            (200, Portal.form, .over), (401, "", .over), (500, "", .unknown), (429, "", .unknown),
            (408, "", .unknown),
        ] {
            let asked = Portal.get("/whoami", status, body, sends: "sid=1")
            let outside = body.isEmpty || body.hasPrefix("<p>") ? [] : [Portal.get("/whoami", 200, Portal.form)]
            let rig = Portal.rig([asked] + outside)
            #expect(try await confirm(rig, proof: proof) == expected, "\(status)")
        }
        let lost = Portal.get("/whoami", sends: "sid=1").replying(.failure(SideRequestError(.timedOut, reason: "late")))
        #expect(try await confirm(Portal.rig([lost]), proof: proof) == .unknown)
    }

    @Test(
        "a gateway's session is confirmed at the upstream's address with and without it: a public address proves nothing"
    )
    func base() async throws {
        let inside = Portal.get(sends: "sid=1")
        #expect(try await confirm(Portal.rig([inside, Portal.get("/app/home", 200, Portal.form)])) == .stillGood)
        #expect(try await confirm(Portal.rig([inside, Portal.get()])) == .over)
        let out = Portal.get("/app/home", 200, Portal.form, sends: "sid=1")
        #expect(try await confirm(Portal.rig([out, Portal.get("/app/home", 200, Portal.form)])) == .over)
        let written = Portal.get("/app/home", 200, "<form><input name=q></form>" + Portal.form, sends: "sid=1")
        let inPlace = [Portal.get("/app/home", 200, Portal.form)]
        let elsewhere = [Portal.get("/app/home", 302, to: "/login"), Portal.get("/login", 200, Portal.form)]
        for outside in [inPlace, elsewhere] {
            let confirmed = try await confirm(Portal.rig([written] + outside))
            #expect(confirmed == .stillGood, "somebody wrote a form on the page")
        }
        let trouble = Portal.get("/app/home", 503, "", sends: "sid=1")
        #expect(try await confirm(Portal.rig([trouble, Portal.get("/app/home", 200, Portal.form)])) == .unknown)
        #expect(try await confirm(Portal.rig([trouble, Portal.get("/app/home", 503, "")])) == .over)
    }

    @Test("a confirmation follows redirects and stores cookies that renew the session")
    func renewed() async throws {
        let held = try session()
        let rig = Portal.rig([
            Portal.get("/app/home", 302, set: ["sid=2; Path=/"], to: "/app/start", sends: "sid=1"),
            Portal.get("/app/start", sends: "sid=2"), Portal.get("/app/home", 302, to: "/login"),
            Portal.get("/login", 200, Portal.form),
        ])
        #expect(try await confirm(rig, held) == .stillGood)
        #expect(try rig.cookies(of: held) == "sid=2")
    }
}
