// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("A gateway that no preset knows is answered as its rules say")
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

    @Test("the form is the one that has the parameters, with its own hidden inputs and its own action")
    func form() async throws {
        let page = """
            <p>Please log in</p><form action="/search"><input type=hidden name=scope value=all><input name=q></form>
            <form action="../sign-in?next=%2F"><input type=hidden name=csrf value="t&amp;1"><input type=hidden name=user value=x>
            <input name=user><input type=password name=pass></form>
            """
        let step = GatewayStep(
            target: .form, parameters: [try part("user", "{username}"), try part("pass", "{password}")],
            hiddenFields: true)
        let world = Portal.world([
            Portal.get("/app/home", 200, page, set: ["pre=1; Path=/"]),
            Portal.post(
                "/sign-in", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "pre=1",
                form: "csrf=t%261&user=ann-u&pass=pass%22word"),
            Portal.get(sends: "pre=1; sid=2"),
        ])
        let won = try await world.win(Portal.login(rules([step])))
        #expect(try world.cookies(of: won) == "pre=1; sid=2")
        #expect(world.requests.sent[1].url.query == "next=%2F")
    }

    @Test("steps follow one another: each fills the form of the page before, over its redirect")
    func steps() async throws {
        let steps = [
            GatewayStep(target: .form, parameters: [try part("user", "{username}")], hiddenFields: true),
            GatewayStep(target: .form, parameters: [try part("pass", "{password}")], hiddenFields: true),
        ]
        let (first, second) = (
            "Please log in<form action=/one><input type=hidden name=a value=1><input name=user></form>",
            "<form action=/two><input type=hidden name=b value=2><input name=pass></form>"
        )
        let world = Portal.world([
            Portal.get("/app/home", 200, first, set: ["s=1; Path=/"]),
            Portal.post("/one", 303, to: "/password", sends: "s=1", form: "a=1&user=ann-u"),
            Portal.get("/password", 200, second, sends: "s=1"),
            Portal.post("/two", 200, set: ["sid=2; Path=/"], sends: "s=1", form: "b=2&pass=pass%22word"),
        ])
        _ = try await world.win(Portal.login(rules(steps, success: [Self.cookie])))
        #expect(world.steps == ["page: 200", "step 1: 303", "redirect: 200", "step 2: 200"])
        let wrongName = Portal.world([
            Portal.get("/app/home", 200, first, set: ["s=1; Path=/"]),
            Portal.post("/one", 200, first, sends: "s=1", form: "a=1&user=ann-u"),
        ])
        await wrongName.expectRejection(try Portal.login(rules(steps, success: [Self.cookie])))
    }

    @Test("a step's own rules are asked ahead of the gateway's")
    func stepRules() async throws {
        let code = ResponseMatcher(formFields: ["code"])
        let locked = FailureMatcher(matcher: ResponseMatcher(statuses: [423]), cause: .locked)
        let steps = [
            GatewayStep(
                target: .address("/one"), parameters: [try part("user", "{username}")], success: [code],
                failed: [locked]),
            GatewayStep(target: .address("two"), parameters: [try part("code", "{password}")]),
        ]
        func world(_ answer: ScriptedStep...) -> World {
            Portal.world([Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"])] + answer)
        }
        let rules = rules(steps, success: [Self.cookie])
        // The second page looks like the first; the step's own evidence knows better.
        let page = "Please log in<form><input name=code></form>"
        let right = world(
            Portal.post("/one", 200, page, sends: "s=1", form: "user=ann-u"),
            Portal.post("/two", 200, set: ["sid=2; Path=/"], sends: "s=1", form: "code=pass%22word"))
        _ = try await right.win(Portal.login(rules))
        let refused = world(Portal.post("/one", 423, sends: "s=1", form: "user=ann-u"))
        await refused.expectRejection(try Portal.login(rules), .accountLocked)
        let strange = world(Portal.post("/one", 200, "<p>News</p>", sends: "s=1", form: "user=ann-u"))
        _ = await strange.expectUnknown(try Portal.login(rules))
    }

    @Test("a login whose one-time password is used up sends nothing: the password before it would go for nothing")
    func usedOneTimePassword() async throws {
        let steps = [
            GatewayStep(target: .form, parameters: [try part("user", "{username}")]),
            GatewayStep(target: .form, parameters: [try part("code", "{totp}")]),
        ]
        let ann = Credential(
            name: "ann", fields: ["username": Secret("ann-u"), "totp-seed": Secret("GEZDGNBV")],
            oneTimePasswords: UsedUp())
        let world = World([], credentials: [ann])
        let failure = await world.expectUnknown(try Portal.login(rules(steps, success: [Self.cookie])))
        #expect(failure.retryAt == 90_000 && world.requests.sent.isEmpty)
    }

    @Test("a JSON login sends an object and its answers are read as texts")
    func json() async throws {
        let step = GatewayStep(
            target: .address("/api/login"),
            parameters: [try part("user", "{username}"), try part("pass", "{password}")],
            body: .json, headers: [try part("X-Requested-With", "{username} by proxy")])
        let failed = FailureMatcher(matcher: ResponseMatcher(bodyContains: [#""error":"bad""#]), cause: .wrongPassword)
        let rules = rules([step], success: [Self.cookie], failed: [failed])
        func world(_ body: String, set cookies: [String]) -> World {
            var fields: HTTPFields = [.contentType: "application/json"]
            fields[values: .setCookie] = cookies
            let answer = SideResponse(status: 200, fields: fields, body: Array(body.utf8))
            return Portal.world([
                Portal.get("/app/home", 200, "Please log in"),
                Portal.post(
                    "/api/login", sends: nil, form: #"{"pass":"pass\"word","user":"ann-u"}"#
                ).replying(.success(answer)),
            ])
        }
        let right = world(#"{"ok":true}"#, set: ["sid=2; Path=/"])
        _ = try await right.win(Portal.login(rules))
        let sent = try #require(right.requests.sent.last)
        #expect(sent.fields[.contentType] == "application/json")
        #expect(sent.fields[try #require(HTTPField.Name("X-Requested-With"))] == "ann-u by proxy")
        await world(#"{"error":"bad"}"#, set: []).expectRejection(try Portal.login(rules))
    }

    @Test("evidence that is named must be there; without, and without the login page, it is unknown")
    func noEvidence() async throws {
        let step = GatewayStep(target: .address("/in"), parameters: [try part("user", "{username}")])
        let rules = rules([step], success: [Self.cookie])
        func world(_ last: ScriptedStep) -> World {
            Portal.world([
                Portal.get("/app/home", 200, "Please log in", set: ["s=1; Path=/"]),
                Portal.post("/in", 200, "<p>Hello</p>", sends: "s=1", form: "user=ann-u"), last,
            ])
        }
        let unknown = await world(Portal.get(sends: "s=1")).expectUnknown(try Portal.login(rules))
        #expect(unknown.detail.contains("`success`"))
        await world(Portal.get("/app/home", 200, "PLEASE LOG IN", sends: "s=1")).expectRejection(
            try Portal.login(rules))
        _ = try await world(Portal.get(set: ["sid=2; Path=/"], sends: "s=1")).win(Portal.login(rules))
    }

    @Test("a page that is named is fetched, need not be known, and proves nothing")
    func namedPage() async throws {
        let step = GatewayStep(page: "/login", target: .form, parameters: [try part("user", "{username}")])
        let script = [
            Portal.get("/login", 200, "<form><input name=user></form>", set: ["s=1; Path=/"]),
            Portal.post("/login", 302, set: ["sid=2; Path=/"], to: "/login", sends: "s=1", form: "user=ann-u"),
            Portal.get("/login", 200, "<p>Hello ann</p>", sends: "s=1; sid=2"),
        ]
        let world = Portal.world(script + [Portal.get(sends: "s=1; sid=2")])
        _ = try await world.win(Portal.login(rules([step]), challenged: nil))
        let wrong = Portal.world(script + [Portal.get("/app/home", 200, "Please log in", sends: "s=1; sid=2")])
        await wrong.expectRejection(try Portal.login(rules([step])))
    }

    @Test("by GET the parameters are the query")
    func byGET() async throws {
        let step = GatewayStep(
            target: .address("/in?a=1"), method: "GET", parameters: [try part("user", "{username}")])
        let world = Portal.world([
            Portal.get("/app/home", 200, "Please log in"), Portal.get("/in", 200, set: ["sid=2"]),
        ])
        _ = try await world.win(Portal.login(rules([step], success: [Self.cookie])))
        #expect(world.requests.sent.last?.url.query == "a=1&user=ann-u")
    }
}

/// Every step is used up until another begins.
private struct UsedUp: OneTimePasswords {
    func password(from seed: Secret, of credential: String) throws(TemplateError) -> Secret {
        throw .oneTimePasswordUsed(credential: credential, nextAt: 90_000)
    }

    func check(_ seed: Secret, of credential: String) throws(TemplateError) {
        throw .oneTimePasswordUsed(credential: credential, nextAt: 90_000)
    }
}
