// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Gateways without a preset")
struct OwnGatewayTests {
    private static let marker = ResponseMatcher(bodyContains: ["please log in"])
    private static let cookie = ResponseMatcher(cookies: ["sid"])

    private func part(_ name: String, _ text: String) throws -> GatewayStep.Part {
        GatewayStep.Part(name: name, value: try TextTemplate(text))
    }

    private func rules(
        _ steps: [GatewayStep], success: [ResponseMatcher] = [], failed: [FailureMatcher] = []
    ) -> GatewayRules {
        GatewayRules(detect: [Self.marker], steps: steps, success: success, failed: failed)
    }

    @Test("the submitted form is the one with the parameters, with its hidden inputs and its action")
    func form() async throws {
        let page = """
            <p>Please log in</p><form action="/search"><input type=hidden name=scope value=all><input name=q></form>
            <form action="../sign-in?next=%2F"><input type=hidden name=csrf value="t&amp;1"><input type=hidden name=user value=x>
            <input name=user><input type=password name=pass></form>
            """
        let step = GatewayStep(
            target: .form, parameters: [try part("user", "{username}"), try part("pass", "{password}")],
            hiddenFields: true)
        let rig = Portal.rig([
            Portal.get("/app/home", 200, page, set: ["pre=1; Path=/"]),
            Portal.post(
                "/sign-in", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "pre=1",
                form: "csrf=t%261&user=ann-u&pass=pass%22word"),
            Portal.get(sends: "pre=1; sid=2"),
        ])
        let established = try await rig.logIn(Portal.login(rules([step])))
        #expect(try rig.cookies(of: established) == "pre=1; sid=2")
        #expect(rig.requests.sent[1].url.query == "next=%2F")
    }

    @Test("each step of a login fills the form of the previous page, after its redirect")
    func steps() async throws {
        let steps = [
            GatewayStep(target: .form, parameters: [try part("user", "{username}")], hiddenFields: true),
            GatewayStep(target: .form, parameters: [try part("pass", "{password}")], hiddenFields: true),
        ]
        let (first, second) = (
            "Please log in<form action=/one><input type=hidden name=a value=1><input name=user></form>",
            "<form action=/two><input type=hidden name=b value=2><input name=pass></form>"
        )
        let rig = Portal.rig([
            Portal.get("/app/home", 200, first, set: ["s=1; Path=/"]),
            Portal.post("/one", 303, to: "/password", sends: "s=1", form: "a=1&user=ann-u"),
            Portal.get("/password", 200, second, sends: "s=1"),
            Portal.post("/two", 200, set: ["sid=2; Path=/"], sends: "s=1", form: "b=2&pass=pass%22word"),
        ])
        _ = try await rig.logIn(Portal.login(rules(steps, success: [Self.cookie])))
        #expect(
            rig.steps == [
                "page: 200", "the login page is /app/home, by body-contains please log in", "step 1: 303",
                "redirect: 200", "step 2: 200", "the login worked: the answer matches `success` by cookie sid",
            ])
        let wrongName = Portal.rig([
            Portal.get("/app/home", 200, first, set: ["s=1; Path=/"]),
            Portal.post("/one", 200, first, sends: "s=1", form: "a=1&user=ann-u"),
        ])
        await wrongName.expectRejection(try Portal.login(rules(steps, success: [Self.cookie])))
    }

    @Test("a step's own rules precede the gateway's")
    func stepRules() async throws {
        let code = ResponseMatcher(formFields: ["code"])
        let locked = FailureMatcher(matcher: ResponseMatcher(statuses: [423]), cause: .locked)
        let steps = [
            GatewayStep(
                target: .address("/one"), parameters: [try part("user", "{username}")], success: [code],
                failed: [locked]),
            GatewayStep(target: .address("two"), parameters: [try part("code", "{password}")]),
        ]
        func rig(_ answer: ScriptedStep...) -> LoginRig {
            Portal.rig([Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"])] + answer)
        }
        let rules = rules(steps, success: [Self.cookie])
        // The second page looks like the first; the step's own evidence decides.
        let page = "Please log in<form><input name=code></form>"
        let right = rig(
            Portal.post("/one", 200, page, sends: "s=1", form: "user=ann-u"),
            Portal.post("/two", 200, set: ["sid=2; Path=/"], sends: "s=1", form: "code=pass%22word"))
        _ = try await right.logIn(Portal.login(rules))
        let refused = rig(Portal.post("/one", 423, sends: "s=1", form: "user=ann-u"))
        await refused.expectRejection(try Portal.login(rules), .accountLocked)
        let strange = rig(Portal.post("/one", 200, "<p>News</p>", sends: "s=1", form: "user=ann-u"))
        _ = await strange.expectUnknown(try Portal.login(rules))
    }

    @Test("a login whose one-time password is used up sends nothing, not even an earlier step")
    func usedOneTimePassword() async throws {
        let steps = [
            GatewayStep(target: .form, parameters: [try part("user", "{username}")]),
            GatewayStep(target: .form, parameters: [try part("code", "{totp}")]),
        ]
        let ann = Credential(
            name: "ann", fields: ["username": Secret("ann-u"), "totp-seed": Secret("GEZDGNBV")],
            oneTimePasswords: UsedUp())
        let rig = LoginRig([], credentials: [ann])
        let failure = await rig.expectUnknown(try Portal.login(rules(steps, success: [Self.cookie])))
        #expect(failure.retryAt == 90_000 && rig.requests.sent.isEmpty)
    }

    @Test("a JSON login sends an object, and its answers are matched as text")
    func json() async throws {
        let step = GatewayStep(
            target: .address("/api/login"),
            parameters: [try part("user", "{username}"), try part("pass", "{password}")],
            body: .json, headers: [try part("X-Requested-With", "{username} by proxy")])
        let failed = FailureMatcher(matcher: ResponseMatcher(bodyContains: [#""error":"bad""#]), cause: .wrongPassword)
        let rules = rules([step], success: [Self.cookie], failed: [failed])
        func rig(_ body: String, set cookies: [String]) -> LoginRig {
            var fields: HTTPFields = [.contentType: "application/json"]
            fields[values: .setCookie] = cookies
            let answer = SideResponse(status: 200, fields: fields, body: Array(body.utf8))
            return Portal.rig([
                Portal.get("/app/home", 200, "Please log in"),
                Portal.post(
                    "/api/login", sends: nil, form: #"{"pass":"pass\"word","user":"ann-u"}"#
                ).replying(.success(answer)),
            ])
        }
        let right = rig(#"{"ok":true}"#, set: ["sid=2; Path=/"])
        _ = try await right.logIn(Portal.login(rules))
        let sent = try #require(right.requests.sent.last)
        #expect(sent.fields[.contentType] == "application/json")
        #expect(sent.fields[try #require(HTTPField.Name("X-Requested-With"))] == "ann-u by proxy")
        await rig(#"{"error":"bad"}"#, set: []).expectRejection(try Portal.login(rules))
    }

    @Test("configured evidence must be in the answer; without it and without the login page the outcome is unknown")
    func noEvidence() async throws {
        let step = GatewayStep(target: .address("/in"), parameters: [try part("user", "{username}")])
        let rules = rules([step], success: [Self.cookie])
        func rig(_ last: ScriptedStep) -> LoginRig {
            Portal.rig([
                Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"]),
                Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"), last,
            ])
        }
        let unknown = await rig(Portal.get(sends: "s=1")).expectUnknown(try Portal.login(rules))
        #expect(unknown.detail.contains("`success`"))
        await rig(Portal.get("/app/home", 200, "PLEASE LOG IN", sends: "s=1")).expectRejection(
            try Portal.login(rules))
        _ = try await rig(Portal.get(set: ["sid=2; Path=/"], sends: "s=1")).logIn(Portal.login(rules))
    }

    @Test("a configured login page is fetched, need not match `detect`, and proves nothing")
    func namedPage() async throws {
        let step = GatewayStep(page: "/login", target: .form, parameters: [try part("user", "{username}")])
        let script = [
            Portal.get("/login", 200, "<form><input name=user></form>", set: ["s=1; Path=/"]),
            Portal.post("/login", 302, set: ["sid=2; Path=/"], to: "/login", sends: "s=1", form: "user=ann-u"),
            Portal.get("/login", 200, "<p>Hello ann</p>", sends: "s=1; sid=2"),
        ]
        let asked = Portal.get("/app/home", 200, "Please log in")
        let rig = Portal.rig(script + [Portal.get(sends: "s=1; sid=2"), asked])
        let shown = try await rig.logIn(Portal.login(rules([step]), challenged: nil))
        #expect(shown.submission == nil && rig.latches.acceptance(Portal.key, of: .ann) != nil)
        let open = Portal.rig(script + [Portal.get(sends: "s=1; sid=2"), Portal.get()])
        let likely = try await open.logIn(Portal.login(rules([step]), challenged: nil))
        #expect(likely.submission != nil, "an address that is open without a session proves nothing")
        let wrong = Portal.rig(script + [Portal.get("/app/home", 200, "Please log in", sends: "s=1; sid=2"), asked])
        await wrong.expectRejection(try Portal.login(rules([step])))
    }

    @Test("a login form with GET sends its parameters as the query")
    func byGET() async throws {
        let step = GatewayStep(
            target: .address("/in?a=1"), method: "GET", parameters: [try part("user", "{username}")])
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in"), Portal.get("/in", 200, set: ["sid=2"]),
        ])
        _ = try await rig.logIn(Portal.login(rules([step], success: [Self.cookie])))
        #expect(rig.requests.sent.last?.url.query == "a=1&user=ann-u")
    }
}

/// One-time passwords whose current step is already used.
private struct UsedUp: OneTimePasswords {
    func password(from seed: Secret, of credential: String) throws(TemplateError) -> Secret {
        throw .oneTimePasswordUsed(credential: credential, nextAt: 90_000)
    }

    func check(_ seed: Secret, of credential: String) throws(TemplateError) {
        throw .oneTimePasswordUsed(credential: credential, nextAt: 90_000)
    }
}
