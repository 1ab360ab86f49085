// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import TestSupport
import Testing

@Suite("A form login is judged by the answer to the form and at configured addresses")
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

    /// A login whose page only a caller met: the upstream's own address is open.
    private func atCallers(_ rules: GatewayRules = .jSecurityCheck, _ path: String = "/app/home") throws -> GatewayLogin
    {
        try Portal.login(rules, challenged: "\(Portal.origin)\(path)", base: "\(Portal.origin)/app/")
    }

    @Test("success in the answer is never a rejection, although the page after it holds the form")
    func success() async throws {
        let world = Portal.world([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 302, set: ["sid=2; Path=/"], to: "/start", sends: "pre=1", form: "user=ann-u"),
            Portal.get("/start", 200, "Please log in as another user", sends: "pre=1; sid=2"),
        ])
        _ = try await world.win(Portal.login(rules([step(.address("/in"))], success: [Self.cookie])))
        #expect(world.latches.all.isEmpty)
    }

    @Test("a known failure in the answer is a rejection, although success is there as well")
    func failedWins() async throws {
        let failed = FailureMatcher(matcher: ResponseMatcher(bodyContains: ["wrong"]), cause: .wrongPassword)
        let world = Portal.world([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 200, "wrong", set: ["sid=2; Path=/"], sends: "pre=1", form: "user=ann-u"),
        ])
        await world.expectRejection(
            try Portal.login(rules([step(.address("/in"))], success: [Self.cookie], failed: [failed])))
    }

    @Test("a page in answer without a new cookie, a redirect, or a sign that is named is no session")
    func silentPage() async throws {
        let world = Portal.world([
            Portal.get("/app/home", 200, "Please log in", set: ["pre=1; Path=/"]),
            Portal.post("/in", 200, "<p>Hello</p>", sends: "pre=1", form: "user=ann-u"),
        ])
        let failure = await world.expectUnknown(
            try Portal.login(rules([step(.address("/in"), page: "/app/home")])))
        #expect(failure.detail.contains("does not tell whether the login worked"))
    }

    @Test("a page that always holds the form, met first by a caller, is not about the credential: new cookies win")
    func alwaysMarked() async throws {
        let always = Portal.get("/app/login.html", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"])
        let redirected = Portal.world([
            Self.open, always,
            Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/login.html").status(302),
            Portal.get("/app/login.html", 200, Portal.form, sends: "JSESSIONID=2"),
        ])
        let won = try await redirected.win(atCallers(.jSecurityCheck, "/app/login.html"))
        #expect(try redirected.cookies(of: won) == "JSESSIONID=2")
        let plain = Portal.world([Self.open, always, Portal.post(set: ["JSESSIONID=2; Path=/app"])])
        _ = try await plain.win(atCallers(.jSecurityCheck, "/app/login.html"))
    }

    @Test("the redirect back to the login page is a rejection", arguments: [[], ["JSESSIONID=2; Path=/app"]])
    func redirectBack(_ cookies: [String]) async throws {
        let sent = cookies.isEmpty ? "JSESSIONID=1" : "JSESSIONID=2"
        let configured = Portal.world([
            Self.home, Portal.post(set: cookies, to: "/app/home").status(302),
            Portal.get("/app/home", 200, Portal.form, sends: sent),
        ])
        await configured.expectRejection(try Portal.login())
        let elsewhere = Portal.world([
            Self.open, Self.home, Portal.post(set: cookies, to: "/app/error").status(302),
            Portal.get("/app/error", 200, Portal.form, sends: sent),
        ])
        await elsewhere.expectRejection(try atCallers())
        guard cookies.isEmpty else { return }
        let callers = Portal.world([
            Self.open, Self.home, Portal.post(to: "/app/home").status(302),
            Portal.get("/app/home", 200, Portal.form, sends: sent),
        ])
        await callers.expectRejection(try atCallers())
    }

    @Test(
        "without a sign in the answer, a page that a caller met proves nothing; an error page of Tomcat is a rejection")
    func noSign() async throws {
        let rules = rules([try step(.address("/in"))])
        let page = Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"])
        let unknown = Portal.world([
            Self.open, page, Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"),
            Portal.get("/app/home", 200, "Please log in", sends: "s=1"),
        ])
        let failure = await unknown.expectUnknown(try atCallers(rules))
        #expect(failure.detail.contains("`prove-at`"))
        let open = Portal.world([
            Self.open, page, Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"),
            Portal.get("/app/home", 200, "<p>Welcome</p>", sends: "s=1"),
        ])
        _ = try await open.win(atCallers(rules))
        let tomcat = Portal.world([
            Self.open, Self.home, Portal.post("/app/j_security_check", 200, "<p>Wrong password</p>"),
            Portal.get("/app/home", 200, Portal.form, sends: "JSESSIONID=1"),
        ])
        await tomcat.expectRejection(try atCallers())
    }

    @Test("`prove-at` decides: the page is taken from there, and a page that is still there is a rejection")
    func proveAt() async throws {
        let proof = "\(Portal.origin)/app/whoami"
        let page = Portal.get("/app/whoami", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"])
        let right = Portal.world([
            page, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/start").status(302),
            Portal.get("/app/start", sends: "JSESSIONID=2"), Portal.get("/app/whoami", sends: "JSESSIONID=2"),
        ])
        _ = try await right.win(Portal.login(proof: proof))
        let wrong = Portal.world([
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
        func world(_ steps: [ScriptedStep]) -> World { World(steps, credentials: [.ann], latches: latches) }
        let login = try Portal.login()
        for _ in 0..<2 {
            _ = try await world(welcome).win(login)
            let failure = await world(refusal).expectUnknown(login)
            #expect(failure.retryAt == World.now + 60_000 && failure.detail.contains("status 403"))
        }
        let rejection = await world(refusal).lose(login)
        #expect(rejection.code == .rejected && rejection.detail.contains("`failed` and `success`"))
        #expect(await world([]).lose(login).code == .latched)
    }

    @Test("new cookies alone mark no value as accepted: a 403 to it is a rejection at once")
    func likelyIsNotShown() async throws {
        let first = Portal.world([Self.open, Self.home, Portal.post(set: ["JSESSIONID=2; Path=/app"])])
        _ = try await first.win(atCallers())
        let next = World(
            [Self.open, Self.home, Portal.post("/app/j_security_check", 403)], credentials: [.ann],
            latches: first.latches)
        #expect(await next.lose(try atCallers()).code == .rejected)
    }

    @Test("a credential that cannot be used leaves a request alone where certainly nobody asks for a login")
    func latchedBeforeRequest() async throws {
        func login(_ rules: GatewayRules = .jSecurityCheck) throws -> GatewayLogin {
            GatewayLogin(
                rules, key: Portal.key, base: try #require(WebURL("\(Portal.origin)/app/")),
                target: WebURL("\(Portal.origin)/app/home"))
        }
        func world(_ steps: [ScriptedStep]) -> World {
            let world = Portal.world(steps)
            world.latches.close(Portal.key, for: .ann, Latch(reason: .rejected, closedAt: World.now))
            return world
        }
        let free = try await world([Self.open, Portal.get("/app/home", 200, "<p>News</p>")]).win(login())
        #expect(free.isEmpty && free.expiresAt == World.now + 60_000)
        #expect(await world([Self.open, Self.home]).lose(try login()).code == .latched)
        #expect(await world([Self.open, Portal.get("/app/home", 503)]).lose(try login()).code == .latched)
        // There the login looks for no page, so that none tells anything.
        #expect(await world([]).lose(try login(rules([step(.address("/in"), page: "/login")]))).code == .latched)
        let unknown = try await World([Self.open, Portal.get("/app/home", 200, "<p>News</p>")]).win(login())
        #expect(unknown.isEmpty)
        #expect(await World([Self.open, Self.home]).lose(try login()).code == .noCredential)
    }

    @Test("the same form in answer is the login page again, although only a redirect tells the page")
    func formAgain() async throws {
        let rules = rules(
            [try step(.form, page: "/login")],
            detect: ResponseMatcher(statuses: [302], redirectTo: ["/login"]))
        let form = "<form action=/login><input name=user></form>"
        let world = Portal.world([
            Portal.get("/login", 200, form, set: ["s=1; Path=/"]),
            Portal.post("/login", 200, "Try again \(form)", sends: "s=1", form: "user=ann-u"),
        ])
        await world.expectRejection(try Portal.login(rules))
    }

    @Test("pages of an identifier-first login may look alike, with one action; only the very form again is a rejection")
    func identifierFirst() async throws {
        let rules = rules([try step(.form), try step(.form, "pass")])
        let first = "Please log in<form action=/auth><input name=user></form>"
        let second = "Please log in<form action=/auth><input type=hidden name=user><input name=pass></form>"
        let page = Portal.get("/app/home", 200, first, set: ["s=1; Path=/"])
        let right = Portal.world([
            page, Portal.post("/auth", 200, second, sends: "s=1", form: "user=ann-u"),
            Portal.post("/auth", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "s=1", form: "pass=ann-u"),
            Portal.get(sends: "s=1; sid=2"),
        ])
        _ = try await right.win(Portal.login(rules))
        let unknownUser = Portal.world([page, Portal.post("/auth", 200, first, sends: "s=1", form: "user=ann-u")])
        await unknownUser.expectRejection(try Portal.login(rules))
        let refused = Portal.world([page, Portal.post("/auth", 403, "", sends: "s=1", form: "user=ann-u")])
        _ = await refused.expectUnknown(try Portal.login(rules))
    }
}
