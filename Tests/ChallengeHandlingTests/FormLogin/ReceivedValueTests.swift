// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import TestSupport
import Testing

@Suite("Logins send values that the server has sent")
struct ReceivedValueTests {
    private func rules(_ steps: [GatewayStep], inject: [(String, String)] = []) throws -> GatewayRules {
        GatewayRules(
            detect: [ResponseMatcher(statuses: [401])], steps: steps,
            inject: try inject.map {
                InjectedTemplate(name: try #require(HTTPField.Name($0)), value: try TextTemplate($1))
            })
    }

    private func part(_ name: String, _ text: String) throws -> GatewayStep.Part {
        GatewayStep.Part(name: name, value: try TextTemplate(text))
    }

    private func answer(
        _ status: Int = 200, _ body: String = "{}", _ fields: HTTPFields = [:], set cookies: [String] = []
    ) -> Result<SideResponse, SideRequestError> {
        var fields = fields
        fields[.contentType] = fields[.contentType] ?? "application/json"
        fields[values: .setCookie] = cookies
        return .success(SideResponse(status: status, fields: fields, body: Array(body.utf8)))
    }

    @Test("a cookie of the page goes along in a field of the form's request")
    func cookieInField() async throws {
        let name = try #require(HTTPField.Name("X-CSRF-Token"))
        let step = GatewayStep(
            page: "/login", target: .address("/api/login"),
            parameters: [try part("pass", "{password}")], body: .json,
            headers: [try part("X-CSRF-Token", "{cookie:csrf_token_P80}")])
        let rig = Portal.rig([
            Portal.get("/login", set: ["csrf_token_P80=c1; Path=/", "other=2; Path=/"]),
            ScriptedStep(.post, "\(Portal.origin)/api/login", answer(set: ["sid=3; Path=/"])) {
                $0.fields[name] == "c1"
            },
            Portal.get(sends: "csrf_token_P80=c1; other=2; sid=3"), Portal.get(),
        ])
        _ = try await rig.logIn(Portal.login(try rules([step]), challenged: nil))
    }

    @Test("a value of the page, found by an expression, goes along in a parameter")
    func page() async throws {
        let step = GatewayStep(
            page: "/login", target: .address("/authenticate"),
            parameters: [try part("token", #"{page:/"csrf": ?"([^"}]+)"/}"#), try part("pass", "{password}")])
        let rig = Portal.rig([
            Portal.get("/login", 200, #"<script>init({"csrf": "t0k"})</script>"#),
            Portal.post(
                "/authenticate", 302, set: ["sid=1; Path=/"], to: "/", sends: nil, form: "token=t0k&pass=pass%22word"),
            Portal.get("/", sends: "sid=1"), Portal.get(sends: "sid=1"), Portal.get(),
        ])
        _ = try await rig.logIn(Portal.login(try rules([step]), challenged: nil))
    }

    @Test("a login says which value the server has not sent, and sends no password")
    func missing() async throws {
        let step = GatewayStep(
            page: "/login", target: .address("/authenticate"),
            parameters: [try part("token", "{page:/csrf=(.*)/}"), try part("pass", "{password}")])
        let failure = await Portal.rig([Portal.get("/login")]).expectUnknown(
            try Portal.login(try rules([step]), challenged: nil))
        #expect(failure.detail.contains("{page:/csrf=(.*)/}"))
    }

    @Test("a JSON body may have lists, objects and numbers, as JSON-RPC has them")
    func jsonRPC() async throws {
        var step = GatewayStep(target: .address("/json"), body: .json)
        step.document = try AnswerTemplate(["method": "auth.login", "params": ["{password}"], "id": 1])
        step.failed = [
            FailureMatcher(
                matcher: ResponseMatcher(json: [
                    JSONMatcher(pointer: try #require(JSONPointer("/result")), text: "false")
                ]),
                cause: .wrongPassword)
        ]
        func rig(_ result: String) -> LoginRig {
            Portal.rig(
                [
                    ScriptedStep(
                        .post, "\(Portal.origin)/json",
                        answer(200, #"{"id": 1, "result": \#(result), "error": null}"#, set: ["_session_id=9; Path=/"])
                    ) {
                        $0.json == ["method": "auth.login", "params": ["pass\"word"], "id": 1]
                            && $0.fields[.contentType] == "application/json"
                    }
                ])
        }
        _ = try await rig("true").logIn(Portal.login(try rules([step]), challenged: nil))
        await rig("false").expectRejection(try Portal.login(try rules([step]), challenged: nil))
    }

    @Test("a field of an answer is a session without any credential")
    func withoutCredential() async throws {
        let name = try #require(HTTPField.Name("X-Transmission-Session-Id"))
        var rules = try rules(
            [
                GatewayStep(
                    target: .address("/rpc"), method: "GET",
                    extraction: GatewayExtraction([.init(name: "sid", source: .header(name))]))
            ], inject: [("X-Transmission-Session-Id", "{sid}")])
        rules.detect = [ResponseMatcher(statuses: [409])]
        let rig = LoginRig(
            [ScriptedStep(.get, "\(Portal.origin)/rpc", answer(409, "", [name: "s1"])) { $0.body == nil }],
            credentials: [])
        let login = GatewayLogin(
            rules, key: LatchKey(origin: Portal.origin, challenge: "portal", credential: ""),
            base: try #require(WebURL(Portal.address)))
        let session = try await rig.logIn(login)
        #expect(session.fields == [InjectedField(name: name, value: Secret("s1"))])
    }

    @Test("a refusal of a login without a credential closes no latch", arguments: [401, 403])
    func refusedWithoutCredential(status: Int) async throws {
        let name = try #require(HTTPField.Name("X-Id"))
        let step = GatewayStep(
            target: .address("/rpc"), method: "GET",
            extraction: GatewayExtraction([.init(name: "sid", source: .header(name))]))
        let rig = LoginRig(
            [ScriptedStep(.get, "\(Portal.origin)/rpc", answer(status, "", [name: "s1"]))], credentials: [])
        let login = GatewayLogin(
            try rules([step], inject: [("X-Id", "{sid}")]),
            key: LatchKey(origin: Portal.origin, challenge: "portal", credential: ""),
            base: try #require(WebURL(Portal.address)))
        #expect(await rig.lose(login).code == .failed)
        #expect(rig.latches.all.isEmpty)
    }

    @Test("name and password go in Basic to one address, whose cookie is the session")
    func basicOnce() async throws {
        let step = GatewayStep(
            page: nil, target: .address("/login"), method: "GET",
            headers: [try part("Authorization", "Basic {base64:username:password}")],
            extraction: GatewayExtraction([.init(name: "sid", source: .cookie("trac_auth"))]))
        let rig = Portal.rig([
            ScriptedStep(.get, "\(Portal.origin)/login", answer(302, "", set: ["trac_auth=5; Path=/"])) {
                $0.fields[.authorization] == "Basic YW5uLXU6cGFzcyJ3b3Jk"
            }
        ])
        let session = try await rig.logIn(Portal.login(try rules([step]), challenged: nil))
        #expect(session.cookies?.contains(name: "trac_auth") == true && session.fields.isEmpty)
    }

    @Test("a cookie that is extracted from the answer to a form proves nothing, and a later step sends it")
    func extractedCookie() async throws {
        let page = "<form method=post action=/in><input name=u><input type=password name=p></form>"
        let step = GatewayStep(
            page: "/login", target: .form,
            parameters: [try part("u", "{username}"), try part("p", "{password}")],
            extraction: GatewayExtraction([.init(name: "token", source: .cookie("csrf"))]))
        let next = GatewayStep(target: .address("/tenant"), parameters: [try part("csrf", "{token}")])
        func rig(_ answer: String) -> LoginRig {
            Portal.rig([
                Portal.get("/login", 200, page),
                Portal.post("/in", 200, answer, set: ["csrf=c1; Path=/"], sends: nil, form: "u=ann-u&p=pass%22word"),
            ])
        }
        await rig(page).expectRejection(try Portal.login(try rules([step]), challenged: nil))
        let works = Portal.rig([
            Portal.get("/login", 200, page),
            Portal.post("/in", 200, "in", set: ["csrf=c1; Path=/"], sends: nil, form: "u=ann-u&p=pass%22word"),
            Portal.post("/tenant", 200, set: ["sid=1; Path=/"], sends: "csrf=c1", form: "csrf=c1"),
            Portal.get(sends: "csrf=c1; sid=1"), Portal.get(),
        ])
        _ = try await works.logIn(Portal.login(try rules([step, next]), challenged: nil))
    }

    @Test("a field of the session is the value of a cookie in each request, of the given methods only")
    func injected() async throws {
        let name = try #require(HTTPField.Name("X-CSRFToken"))
        var rules = GatewayRules.passwordForm
        rules.inject = [
            InjectedTemplate(name: name, value: try TextTemplate("{cookie:csrftoken}"), methods: ["POST", "DELETE"])
        ]
        let page = "<form method=post action=/in><input name=u><input type=password name=p></form>"
        let rig = Portal.rig([
            Portal.get("/app/home", 200, page),
            Portal.post(
                "/in", 302, set: ["sid=1; Path=/", "csrftoken=c1; Path=/"], to: "/app/home", sends: nil,
                form: "u=ann-u&p=pass%22word"),
            Portal.get(sends: "sid=1; csrftoken=c1"),
        ])
        let session = try await rig.logIn(Portal.login(rules))
        let signer = try #require(session.signer)
        #expect(session.fields.isEmpty && signer.names == [name])
        func signed(_ method: String, _ cookies: String) throws -> [String] {
            try signer.sign(SigningRequest(method: method, origin: Portal.origin, target: "/", fields: Line(cookies)))
                .fields.map {
                    $0.value.revealText()
                }
        }
        #expect(try signed("POST", "sid=1; csrftoken=c1") == ["c1"])
        #expect(try signed("POST", "csrftoken=c2; sid=1") == ["c2"], "the renewed cookie")
        #expect(try signed("GET", "csrftoken=c2") == [])
        #expect(try signed("DELETE", "xcsrftoken=c2; csrftoken2=c3") == [], "no cookie, no field")
    }

    @Test("the session is handed over with its signer")
    func image() async throws {
        let name = try #require(HTTPField.Name("X-XSRF-TOKEN"))
        for (text, cookies, expected) in [
            ("{decoded-cookie:XSRF}", "XSRF=a%3D%3d%", ["a==%"]), ("v1 {cookie:XSRF}!", "a=1;XSRF=b", ["v1 b!"]),
            ("{decoded-cookie:XSRF}", "XSRF=a%0d%0aHost:b", []),
        ] {
            let template = InjectedTemplate(name: name, value: try TextTemplate(text))
            let signer = try #require(try await InjectedFields([template], .ann).signer)
            let image = try #require(signer.image)
            let copy = try #require(SignerCodec.injectedFields.signer(of: image, for: nil))
            for signer in [signer, copy] {
                let request = SigningRequest(method: "GET", origin: Portal.origin, target: "/", fields: Line(cookies))
                #expect(try signer.sign(request).fields.map { $0.value.revealText() } == expected)
            }
            // A truncated image is not accepted.
            let bytes = image.bytes.revealBytes()
            for length in 0..<bytes.count {
                let short = try #require(SignerImage(Secret(Array(bytes.prefix(length)))))
                #expect(SignerCodec.injectedFields.signer(of: short, for: nil) == nil)
            }
        }
    }
}

/// A request's `Cookie` field.
private final class Line: SigningFields {
    private let value: [UInt8]

    init(_ text: String) { value = Array(text.utf8) }

    func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Void) {
        let other = Array("accept".utf8)
        let name = Array("Cookie".utf8)
        let line = value
        body(other.span, other.span)
        body(name.span, line.span)
    }
}
