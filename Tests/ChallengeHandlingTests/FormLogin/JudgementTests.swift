// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("Evaluation of the answer to a login form")
struct JudgementTests {
    private static let home = Portal.get("/app/home", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"])
    private static let open = Portal.get("/app/", 200, "<p>Everybody may see this</p>", set: ["visitor=1; Path=/"])
    private static let cookie = ResponseMatcher(cookies: ["sid"])

    private func rules(
        _ steps: [GatewayStep], detect: ResponseMatcher = ResponseMatcher(bodyContains: ["please log in"]),
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = []
    ) -> GatewayRules {
        GatewayRules(detect: [detect], steps: steps, success: success, failed: failed)
    }

    private func step(_ target: GatewayStep.Target, page: String? = nil, _ name: String = "user") throws -> GatewayStep
    {
        GatewayStep(
            page: page, target: target, parameters: [.init(name: name, value: try TextTemplate("{username}"))])
    }

    /// Returns a login whose page only the caller has seen: the upstream's own address is open.
    private func atCallers(_ rules: GatewayRules = .jSecurityCheck, _ path: String = "/app/home") throws -> GatewayLogin
    {
        try Portal.login(rules, challenged: "\(Portal.origin)\(path)", base: "\(Portal.origin)/app/")
    }

    @Test("success in the answer is never a rejection, although the page after it holds the form")
    func success() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 302, set: ["sid=2; Path=/"], to: "/start", sends: "pre=1", form: "user=ann-u"),
            Portal.get("/start", 200, "Please log in as another user", sends: "pre=1; sid=2"),
        ])
        _ = try await rig.logIn(Portal.login(rules([step(.address("/in"))], success: [Self.cookie])))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a known failure in the answer is a rejection, although success is there as well")
    func failedWins() async throws {
        let failed = FailureMatcher(matcher: ResponseMatcher(bodyContains: ["wrong"]), cause: .wrongPassword)
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 200, "wrong", set: ["sid=2; Path=/"], sends: "pre=1", form: "user=ann-u"),
        ])
        await rig.expectRejection(
            try Portal.login(rules([step(.address("/in"))], success: [Self.cookie], failed: [failed])))
    }

    @Test("a page in answer to the form without a new cookie, a redirect or configured evidence is not a session")
    func silentPage() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 200, "<p>Hello</p>", sends: "pre=1", form: "user=ann-u"),
        ])
        let failure = await rig.expectUnknown(
            try Portal.login(rules([step(.address("/in"), page: "/app/home")])))
        #expect(failure.detail.contains("does not show whether the login worked"))
    }

    @Test("a caller's page that always holds the form is not about the credential: new cookies are a session")
    func alwaysMarked() async throws {
        let always = Portal.get("/app/login.html", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"])
        let redirected = Portal.rig([
            Self.open, always,
            Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/login.html").status(302),
            Portal.get("/app/login.html", 200, Portal.form, sends: "JSESSIONID=2"),
        ])
        let established = try await redirected.logIn(atCallers(.jSecurityCheck, "/app/login.html"))
        #expect(try redirected.cookies(of: established) == "JSESSIONID=2")
        let plain = Portal.rig([Self.open, always, Portal.post(set: ["JSESSIONID=2; Path=/app"])])
        _ = try await plain.logIn(atCallers(.jSecurityCheck, "/app/login.html"))
    }

    @Test("the redirect back to the login page is a rejection", arguments: [[], ["JSESSIONID=2; Path=/app"]])
    func redirectBack(_ cookies: [String]) async throws {
        let sent = cookies.isEmpty ? "JSESSIONID=1" : "JSESSIONID=2"
        let configured = Portal.rig([
            Self.home, Portal.post(set: cookies, to: "/app/home").status(302),
            Portal.get("/app/home", 200, Portal.form, sends: sent),
        ])
        await configured.expectRejection(try Portal.login())
        let elsewhere = Portal.rig([
            Self.open, Self.home, Portal.post(set: cookies, to: "/app/error").status(302),
            Portal.get("/app/error", 200, Portal.form, sends: sent),
        ])
        await elsewhere.expectRejection(try atCallers())
        guard cookies.isEmpty else { return }
        let callers = Portal.rig([
            Self.open, Self.home, Portal.post(to: "/app/home").status(302),
            Portal.get("/app/home", 200, Portal.form, sends: sent),
        ])
        await callers.expectRejection(try atCallers())
    }

    @Test(
        "without evidence in the answer, a caller's page proves nothing, but an error page of Tomcat is a rejection")
    func noSign() async throws {
        let rules = rules([try step(.address("/in"))])
        let page = Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"])
        let unknown = Portal.rig([
            Self.open, page, Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"),
            Portal.get("/app/home", 200, "Please log in", sends: "s=1"),
        ])
        let failure = await unknown.expectUnknown(try atCallers(rules))
        #expect(failure.detail.contains("`prove-at`"))
        let open = Portal.rig([
            Self.open, page, Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"),
            Portal.get("/app/home", 200, "<p>Welcome</p>", sends: "s=1"),
        ])
        _ = try await open.logIn(atCallers(rules))
        let tomcat = Portal.rig([
            Self.open, Self.home, Portal.post("/app/j_security_check", 200, "<p>Wrong password</p>"),
            Portal.get("/app/home", 200, Portal.form, sends: "JSESSIONID=1"),
        ])
        await tomcat.expectRejection(try atCallers())
    }

    @Test("`prove-at` shows the login page, and a page that is still there after the form is a rejection")
    func proveAt() async throws {
        let proof = "\(Portal.origin)/app/whoami"
        let page = Portal.get("/app/whoami", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"])
        let right = Portal.rig([
            page, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/start").status(302),
            Portal.get("/app/start", sends: "JSESSIONID=2"), Portal.get("/app/whoami", sends: "JSESSIONID=2"),
        ])
        _ = try await right.logIn(Portal.login(proof: proof))
        let wrong = Portal.rig([
            page, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/start").status(302),
            Portal.get("/app/start", sends: "JSESSIONID=2"),
            Portal.get("/app/whoami", 200, Portal.form, sends: "JSESSIONID=2"),
        ])
        await wrong.expectRejection(try Portal.login(proof: proof))
    }

    @Test(
        "a 403 to a value that the server has shown to accept is tried once more, after a minute; the next one is a rejection"
    )
    func forbidden() async throws {
        let welcome = [
            Self.home, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/home").status(302),
            Portal.get(sends: "JSESSIONID=2"),
        ]
        let refusal = [Self.home, Portal.post("/app/j_security_check", 403, "<p>CSRF check failed</p>")]
        let latches = LocalGate()
        func rig(_ steps: [ScriptedStep]) -> LoginRig { LoginRig(steps, credentials: [.ann], latches: latches) }
        let login = try Portal.login()
        for _ in 0..<2 {
            _ = try await rig(welcome).logIn(login)
            let failure = await rig(refusal).expectUnknown(login)
            #expect(failure.retryAt == LoginRig.now + 60_000 && failure.detail.contains("status 403"))
        }
        let rejection = await rig(refusal).lose(login)
        #expect(rejection.code == .rejected && rejection.detail.contains("`failed` and `success`"))
        #expect(await rig([]).lose(login).code == .latched)
    }

    @Test("new cookies alone do not mark a value as accepted, so its next submission waits")
    func likelyIsNotShown() async throws {
        let first = Portal.rig([Self.open, Self.home, Portal.post(set: ["JSESSIONID=2; Path=/app"])])
        let session = try await first.logIn(atCallers())
        #expect(session.submission?.use.key == Portal.key, "a caller's request will show it")
        #expect(first.latches.acceptance(Portal.key, of: .ann) == nil)
        let next = LoginRig([], credentials: [.ann], latches: first.latches)
        let failure = await next.lose(try atCallers())
        #expect(failure.code == .failed && failure.retryAt == LoginRig.now + 60_000)
    }

    @Test("a credential that cannot be used leaves a request alone where certainly nobody asks for a login")
    func latchedBeforeRequest() async throws {
        func login(_ rules: GatewayRules = .jSecurityCheck) throws -> GatewayLogin {
            GatewayLogin(
                rules, key: Portal.key, base: try #require(WebURL("\(Portal.origin)/app/")),
                target: WebURL("\(Portal.origin)/app/home"))
        }
        func rig(_ steps: [ScriptedStep]) async -> LoginRig {
            let rig = Portal.rig(steps)
            await rig.latches.close(Portal.key, for: .ann, Latch(reason: .rejected, closedAt: LoginRig.now))
            return rig
        }
        let free = try await rig([Self.open, Portal.get("/app/home", 200, "<p>News</p>")]).logIn(login())
        #expect(free.isEmpty && free.expiresAt == LoginRig.now + 60_000)
        #expect(await rig([Self.open, Self.home]).lose(try login()).code == .latched)
        #expect(await rig([Self.open, Portal.get("/app/home", 503)]).lose(try login()).code == .latched)
        // That login does not look for a page, so a page proves nothing.
        #expect(await rig([]).lose(try login(rules([step(.address("/in"), page: "/login")]))).code == .latched)
        let unknown = try await LoginRig([Self.open, Portal.get("/app/home", 200, "<p>News</p>")]).logIn(login())
        #expect(unknown.isEmpty)
        #expect(await LoginRig([Self.open, Self.home]).lose(try login()).code == .noCredential)
    }

    @Test("the form again in its answer is a rejection, even if only a redirect is detected")
    func formAgain() async throws {
        let rules = rules(
            [try step(.form, page: "/login")],
            detect: ResponseMatcher(statuses: [302], redirectTo: ["/login"]))
        let form = "<form action=/login><input name=user></form>"
        let rig = Portal.rig([
            Portal.get("/login", 200, form, set: ["s=1; Path=/"]),
            Portal.post("/login", 200, "Try again \(form)", sends: "s=1", form: "user=ann-u"),
        ])
        await rig.expectRejection(try Portal.login(rules))
    }

    @Test("the password's page of an identifier-first login may show the name again, at the same action")
    func identifierShownAgain() async throws {
        let rules = rules([try step(.form), try step(.form, "pass")])
        let first = "Please log in<form action=/auth><input name=user></form>"
        let second =
            "Please log in<form action=/auth><input name=user value=ann-u readonly><input type=password name=pass></form>"
        let rig = Portal.rig([
            Portal.get("/app/home", 200, first, set: ["s=1; Path=/"]),
            Portal.post("/auth", 200, second, sends: "s=1", form: "user=ann-u"),
            Portal.post("/auth", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "s=1", form: "pass=ann-u"),
            Portal.get(sends: "s=1; sid=2"),
        ])
        _ = try await rig.logIn(Portal.login(rules))
    }

    @Test("pages of an identifier-first login may share an action; only the very form again is a rejection")
    func identifierFirst() async throws {
        let rules = rules([try step(.form), try step(.form, "pass")])
        let first = "Please log in<form action=/auth><input name=user></form>"
        let second = "Please log in<form action=/auth><input type=hidden name=user><input name=pass></form>"
        let page = Portal.get("/app/home", 200, first, set: ["s=1; Path=/"])
        let right = Portal.rig([
            page, Portal.post("/auth", 200, second, sends: "s=1", form: "user=ann-u"),
            Portal.post("/auth", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "s=1", form: "pass=ann-u"),
            Portal.get(sends: "s=1; sid=2"),
        ])
        _ = try await right.logIn(Portal.login(rules))
        let unknownUser = Portal.rig([page, Portal.post("/auth", 200, first, sends: "s=1", form: "user=ann-u")])
        await unknownUser.expectRejection(try Portal.login(rules))
        let refused = Portal.rig([page, Portal.post("/auth", 403, "", sends: "s=1", form: "user=ann-u")])
        _ = await refused.expectUnknown(try Portal.login(rules))
    }
}
