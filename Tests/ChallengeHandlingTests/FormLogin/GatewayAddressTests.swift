// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Addresses that may receive a form's credential")
struct GatewayAddressTests {
    private static let open = Portal.get("/app/", 200, "<p>Everybody may see this</p>")
    private static let marker = ResponseMatcher(bodyContains: ["please log in"])

    private func atCallers(_ rules: GatewayRules = .jSecurityCheck, _ path: String) throws -> GatewayLogin {
        try Portal.login(rules, challenged: "\(Portal.origin)\(path)", base: "\(Portal.origin)/app/")
    }

    private func ownForm() throws -> GatewayRules {
        GatewayRules(
            detect: [Self.marker],
            steps: [
                GatewayStep(
                    target: .form, parameters: [.init(name: "user", value: try TextTemplate("{username}"))],
                    hiddenFields: true)
            ])
    }

    @Test("the login page of the upstream's address is used, although a caller met another one")
    func configuredFirst() async throws {
        let rig = Portal.rig([
            Portal.get("/app/", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"]),
            Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/").status(303),
            Portal.get("/app/", sends: "JSESSIONID=2"),
        ])
        _ = try await rig.logIn(atCallers(.jSecurityCheck, "/app/uploads/evil.html?x=1"))
    }

    @Test("a caller's address is requested without its query")
    func noQuery() async throws {
        let rig = Portal.rig([
            Self.open, Portal.get("/app/pay", 200, Portal.form, set: ["JSESSIONID=1; Path=/app"]),
            Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/pay").status(303),
            Portal.get("/app/pay", sends: "JSESSIONID=2"),
        ])
        let established = try await rig.logIn(atCallers(.jSecurityCheck, "/app/pay?to=mallory"))
        #expect(!established.isRenewedAhead, "no renewal asks for it")
        #expect(rig.requests.sent.allSatisfy { $0.url.query == nil })
    }

    @Test(
        "an address that servers may read in more than one way is not requested",
        arguments: [
            "/wiki/save/../../uploads/evil.html", "/wiki/save/%2e%2e/evil.html", "/wiki//evil.html",
            "/wiki/save;/evil.html", "/wiki/save%2f..%2fevil.html", "/wiki/%252e%252e/evil.html",
        ])
    func doubtful(_ path: String) async throws {
        _ = await Portal.rig([Self.open]).expectUnknown(try atCallers(.jSecurityCheck, path))
    }

    @Test(
        "a preset's form outside of the folders above its page gets no credential",
        arguments: [
            #"<form method=post action="/wiki/save/j_security_check">"#,
            #"<form method=post action="save/j_security_check">"#,
            #"<form method=post action="/uploads/../wiki/save/j_security_check">"#,
        ])
    func foreignFolder(_ form: String) async throws {
        let rig = Portal.rig([Self.open, Portal.get("/uploads/evil.html", 200, form)])
        let failure = await rig.expectUnknown(try atCallers(.jSecurityCheck, "/uploads/evil.html"))
        #expect(failure.detail.contains("save/j_security_check") && failure.detail.contains("`login.url`"))
    }

    @Test("a page that a caller chose neither moves its form's action by <base> nor adds hidden fields")
    func baseAndHidden() async throws {
        let page = """
            <base href="/wiki/save/"><form action="j_security_check"><input type=hidden name=publish value=1></form>
            """
        let rig = Portal.rig([
            Self.open, Portal.get("/app/evil.html", 200, page, set: ["JSESSIONID=1; Path=/app"]),
            Portal.post(set: ["JSESSIONID=2; Path=/app"]),
        ])
        _ = try await rig.logIn(atCallers(.jSecurityCheck, "/app/evil.html"))
    }

    @Test("WebSEAL's form goes to its own address at the root or at the upstream's")
    func webSEAL() async throws {
        let rig = Portal.rig([Self.open, Portal.get("/a/b", 200, #"<form action="/wiki/pkmslogin.form">"#)])
        _ = await rig.expectUnknown(try atCallers(.webSEAL, "/a/b"))
        let root = Portal.rig([
            Self.open, Portal.get("/a/b", 200, #"<form action="/pkmslogin.form">"#),
            Portal.post(
                "/pkmslogin.form", 200, set: ["PD-S-SESSION-ID=1; Path=/"], sends: nil,
                form: "username=ann-u&password=pass%22word&login-form-type=pwd"),
        ])
        _ = try await root.logIn(atCallers(.webSEAL, "/a/b"))
    }

    @Test("a relative `login.url` is relative to the upstream's address, not to a page that a caller chose")
    func relativeURL() async throws {
        var rules = try ownForm()
        rules.steps[0].target = .address("sign-in")
        rules.steps[0].hiddenFields = false
        let rig = Portal.rig([
            Self.open, Portal.get("/wiki/save/page", 200, "Please log in"),
            Portal.post("/app/sign-in", 200, set: ["sid=1; Path=/"], sends: nil, form: "user=ann-u"),
        ])
        _ = try await rig.logIn(atCallers(rules, "/wiki/save/page"))
    }

    @Test(
        "with `url: form`, a form with another action than the accepted one gets nothing, and both paths are reported"
    )
    func acceptedForm() async throws {
        func page(_ action: String, _ hidden: String = "csrf") -> String {
            "Please log in<form action=\(action)><input type=hidden name=\(hidden) value=1><input name=user></form>"
        }
        func rig(_ steps: [ScriptedStep]) async -> LoginRig {
            await Portal.acceptedRig(steps, path: "/sign-in", inputs: ["csrf"])
        }
        func right(_ path: String, _ parameter: String) async -> LoginRig {
            await rig([
                Self.open, Portal.get(path, 200, page("/sign-in;id=\(parameter)?a=\(parameter)")),
                Portal.post(
                    "/sign-in;id=\(parameter)", 200, set: ["sid=\(parameter); Path=/"], sends: nil,
                    form: "csrf=1&user=ann-u"),
            ])
        }
        let rules = try ownForm()
        _ = try await right("/app/a", "1").logIn(atCallers(rules, "/app/a"))
        let evil = await rig([Self.open, Portal.get("/up/evil", 200, page("/wiki/save"))])
        let failure = await evil.expectUnknown(try atCallers(rules, "/up/evil"))
        #expect(failure.isCancelled && failure.lacksChallenge, "no pause for others")
        #expect(failure.detail.contains("/wiki/save") && failure.detail.contains("/sign-in"), "\(failure.detail)")
        let hidden = await rig([Self.open, Portal.get("/up/evil", 200, page("/sign-in", "publish"))])
        _ = await hidden.expectUnknown(try atCallers(rules, "/up/evil"))
        _ = try await right("/app/b", "2").logIn(atCallers(rules, "/app/b"))
    }

    @Test(
        "a page that answers a caller's address gets nothing, unless the server led there or its form is the accepted one"
    )
    func callersPage() async throws {
        let evil = #"<form method=post action="/wiki/save"><input name=title><input type=password name=text></form>"#
        let refused = Portal.rig([Self.open, Portal.get("/uploads/evil.html", 200, evil)])
        let failure = await refused.expectUnknown(try atCallers(.passwordForm, "/uploads/evil.html"))
        #expect(failure.isCancelled && failure.lacksChallenge, "the page of one caller pauses nobody")
        #expect(failure.detail.contains("/uploads/evil.html") && failure.detail.contains("`prove-at`"))
        // A redirect elsewhere than to a login page is no way to one: a wiki's redirect, a short link.
        let short = Portal.rig([
            Self.open, Portal.get("/s/1", 302, to: "/uploads/evil.html"), Portal.get("/uploads/evil.html", 200, evil),
        ])
        _ = await short.expectUnknown(try atCallers(.passwordForm, "/s/1"))
        let form = #"<form method=post action="/in"><input name=user><input type=password name=pass></form>"#
        let led = Portal.rig([
            Self.open, Portal.get("/app/home", 302, to: "/login"),
            Portal.get("/login", 200, form),
            Portal.post(
                "/in", 302, set: ["sid=1; Path=/"], to: "/app/home", sends: nil, form: "user=ann-u&pass=pass%22word"),
            Portal.get(sends: "sid=1"),
        ])
        _ = try await led.logIn(atCallers(.passwordForm, "/app/home"))
    }

    @Test("a form before the accepted one on the login page gets nothing, in this process and in the next")
    func formBefore() async throws {
        let evil = #"<form method=post action="/wiki/save"><input name=title><input type=password name=text></form>"#
        let form = #"<form method=post action="/in"><input name=user><input type=password name=pass></form>"#
        for proof in [nil, "\(Portal.origin)/app/"] {
            let rig = await Portal.acceptedRig(
                [
                    Portal.get("/app/", 200, evil + form),
                    Portal.post(
                        "/in", 302, set: ["sid=1; Path=/"], to: "/app/", sends: nil, form: "user=ann-u&pass=pass%22word"
                    ),
                    Portal.get("/app/", sends: "sid=1"),
                ], path: "/in")
            _ = try await rig.logIn(
                Portal.login(.passwordForm, challenged: nil, base: "\(Portal.origin)/app/", proof: proof))
        }
    }

    @Test("the form of a page that the configuration names may go anywhere on its origin, with a preset, too")
    func namedPage() async throws {
        var rules = GatewayRules.jSecurityCheck
        rules.steps[0].page = "/sso/login.html"
        let form =
            #"<form method=post action="/auth/in"><input name=j_username><input type=password name=j_password></form>"#
        let rig = Portal.rig([
            Portal.get("/sso/login.html", 200, form, set: ["s=1; Path=/"]),
            Portal.post("/auth/in", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "s=1"),
            Portal.get(sends: "s=1; sid=2"),
            Portal.get("/app/home", 302, to: "/sso/login.html"), Portal.get("/sso/login.html", 200, form),
        ])
        _ = try await rig.logIn(Portal.login(rules))
    }

    @Test("a page that a caller chose adds no input to the first form that worked, wherever that goes")
    func addedInputs() async throws {
        var named = try ownForm()
        named.steps[0].target = .address("/sign-in")
        func page(_ inputs: String) -> String {
            "Please log in<form method=post action=/sign-in>\(inputs)<input name=user><input type=password name=pass></form>"
        }
        for (rules, form) in [
            (named, "csrf=1&user=ann-u"), (.passwordForm, "csrf=1&user=ann-u&pass=pass%22word"),
        ] {
            func rig(_ steps: [ScriptedStep]) async -> LoginRig {
                await Portal.acceptedRig(steps, path: "/sign-in", inputs: ["csrf"])
            }
            let right = await rig([
                Self.open, Portal.get("/app/a", 200, page("<input type=hidden name=csrf value=1>")),
                Portal.post("/sign-in", 200, set: ["sid=1; Path=/"], sends: nil, form: form),
            ])
            _ = try await right.logIn(atCallers(rules, "/app/a"))
            for added in rules == named ? ["type=hidden"] : ["type=hidden", "type=checkbox checked"] {
                let evil = await rig([
                    Self.open, Portal.get("/up/evil", 200, page("<input \(added) name=publish value=1>")),
                ])
                let failure = await evil.expectUnknown(try atCallers(rules, "/up/evil"))
                #expect(failure.detail.contains("fields"), "\(failure.detail)")
            }
        }
    }

    @Test("without a login page the failure names the keys to set, and a renewal requests no caller's address")
    func renewal() async throws {
        let failure = await Portal.rig([Self.open]).expectUnknown(
            try Portal.login(challenged: nil, base: "\(Portal.origin)/app/"))
        #expect(failure.isCancelled && failure.lacksChallenge)
        #expect(failure.detail.contains("`login.page`") && failure.detail.contains("`prove-at`"))
    }

    @Test(
        "a challenge at an address with two readings leads nowhere, which keeps no other request from a login",
        arguments: ["/app//a", "/app/a;x", "/app/a%2Fb"])
    func doubtful(path: String) async throws {
        let failure = await Portal.rig([Self.open]).expectUnknown(
            try Portal.login(challenged: "\(Portal.origin)\(path)", base: "\(Portal.origin)/app/"))
        #expect(failure.isCancelled && failure.lacksChallenge)
    }

    @Test("a challenge at an address that shows no login page leads to a pause")
    func vanished() async throws {
        let failure = await Portal.rig([Self.open, Portal.get("/app/a", 200, "welcome")]).expectUnknown(
            try Portal.login(challenged: "\(Portal.origin)/app/a", base: "\(Portal.origin)/app/"))
        #expect(!failure.isCancelled && !failure.lacksChallenge)
    }
}
