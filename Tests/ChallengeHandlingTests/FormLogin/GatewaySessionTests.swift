// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

@Suite("Gateways whose login returns a token")
struct TokenGatewayTests {
    private func part(_ name: String, _ text: String) throws -> GatewayStep.Part {
        GatewayStep.Part(name: name, value: try TextTemplate(text))
    }

    private func field(_ name: String, _ text: String) throws -> InjectedTemplate {
        InjectedTemplate(name: try #require(HTTPField.Name(name)), value: try TextTemplate(text))
    }

    private func rules(
        _ parts: [(String, String)] = [("token", "/data/token")], expires: String? = "/data/expires_in",
        success: [ResponseMatcher] = []
    ) throws -> GatewayRules {
        let extraction = GatewayExtraction(
            try parts.map { .init(name: $0, source: .json(try #require(JSONPointer($1)))) },
            expires: try expires.map { try #require(JSONPointer($0)) })
        let step = GatewayStep(
            target: .address("/api/login"), parameters: [try part("pass", "{password}")], body: .json,
            extraction: extraction)
        return GatewayRules(
            detect: [ResponseMatcher(statuses: [401])], steps: [step], success: success,
            failed: [FailureMatcher(matcher: ResponseMatcher(bodyContains: ["credentials"]), cause: .wrongPassword)],
            inject: [try field("Authorization", "Session {token}")])
    }

    /// Returns the step that submits the form, and its reply.
    private func post(_ answer: String, _ status: Int = 200, set cookies: [String] = []) -> ScriptedStep {
        Portal.post("/api/login", status, answer, set: cookies, sends: nil, form: #"{"pass":"pass\"word"}"#)
    }

    @Test("a token login fetches no page, and its token is sent until its stated expiry")
    func token() async throws {
        let rig = Portal.rig([post(#"{"data":{"token":"t0k","expires_in":60}}"#)])
        let session = try await rig.logIn(Portal.login(try rules()))
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Session t0k"))])
        #expect(session.expiresAt == LoginRig.now + 60_000 && session.cookies == nil && session.isVerified)
        let told = rig.steps.joined()
        #expect(told.contains("token") && !told.contains("t0k"))
    }

    @Test(
        "a token's lifetime is read in any usual form, or may be missing",
        arguments: [
            ("60", 60), ("\"60\"", 60), ("60.0", 60), ("null", nil), ("99999999999999", 10 * 366 * 86_400),
        ] as [(String, Int64?)])
    func life(written: String, seconds: Int64?) async throws {
        let rig = Portal.rig([post(#"{"data":{"token":7,"expires_in":\#(written)}}"#)])
        let session = try await rig.logIn(Portal.login(try rules()))
        #expect(session.expiresAt == seconds.map { LoginRig.now + $0 * 1000 })
        #expect(session.fields.map(\.value) == [Secret("Session 7")])
    }

    @Test("a token login may set cookies as well")
    func cookies() async throws {
        let rig = Portal.rig([post(#"{"data":{"token":"t"}}"#, set: ["sid=1; Path=/; Max-Age=10"])])
        let session = try await rig.logIn(Portal.login(try rules()))
        #expect(session.cookies?.contains(name: "sid") == true && session.fields.count == 1)
        #expect(session.expiresAt == LoginRig.now + 10_000)
    }

    @Test(
        "a token login fails if its answer is not as expected",
        arguments: [
            "", "ok", "[]", "{}", #"{"data":{"token":""}}"#, #"{"data":{"token":null}}"#, #"{"data":{"token":true}}"#,
            #"{"data":{"token":{"a":1}}}"#, #"{"data":{"token":"a\r\nX: y"}}"#, #"{"data":{"token":"ä"}}"#,
            #"{"data":{"token":" a"}}"#, #"{"data":{"token":"a","expires_in":0}}"#,
            #"{"data":{"token":"a","expires_in":-1}}"#,
            #"{"data":{"token":"a","expires_in":"soon"}}"#, #"{"data":{"token":"a","expires_in":1.5}}"#,
        ])
    func unusable(answer: String) async throws {
        let failure = await Portal.rig([post(answer)]).expectUnknown(try Portal.login(try rules()))
        #expect(failure.detail.contains("login.extract"))
    }

    @Test(
        "a redirect or server error in answer to a token login says nothing about the credential",
        arguments: [302, 500, 429])
    func trouble(status: Int) async throws {
        _ = await Portal.rig([post(#"{"data":{"token":"a"}}"#, status)]).expectUnknown(try Portal.login(try rules()))
    }

    @Test(
        "a token login is rejected by its rules and its status, even if there is a token",
        arguments: [(200, "credentials"), (403, ""), (401, "")])
    func rejected(status: Int, word: String) async throws {
        let answer = #"{"data":{"token":"a"},"error":"\#(word)"}"#
        await Portal.rig([post(answer, status)]).expectRejection(try Portal.login(try rules()))
    }

    @Test("a token login needs its configured evidence besides the token")
    func success() async throws {
        let rules = try rules(success: [ResponseMatcher(bodyContains: ["\"ok\":true"])])
        _ = await Portal.rig([post(#"{"data":{"token":"a"}}"#)]).expectUnknown(try Portal.login(rules))
        _ = try await Portal.rig([post(#"{"ok":true,"data":{"token":"a"}}"#)]).logIn(Portal.login(rules))
    }

    @Test("a token login is not tried if the credential lacks another field of its templates")
    func missing() async throws {
        var rules = try rules()
        rules.inject.append(try field("X-Tenant", "{tenant}"))
        let rig = Portal.rig([])
        #expect(await rig.lose(try Portal.login(rules)).code == .noCredential)
    }
}

@Suite("Cookies of a gateway login")
struct LoginCookieTests {
    private func rules(_ callerCookies: Set<String>? = nil) throws -> GatewayRules {
        let step = GatewayStep(
            target: .address("/in"),
            parameters: [.init(name: "user", value: try TextTemplate("{username}"))])
        var rules = GatewayRules(
            detect: [ResponseMatcher(bodyContains: ["please log in"])], steps: [step],
            success: [ResponseMatcher(cookies: ["sid"])])
        if let callerCookies { rules.callerCookies = callerCookies }
        return rules
    }

    /// Runs a login whose page and answer set a session cookie, and a forgery token that expires earlier.
    private func logIn(_ rules: GatewayRules, token: String = "csrftoken") async throws -> Session {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in", set: ["\(token)=1; Path=/", "pre=1; Path=/"]),
            Portal.post(
                "/in", 200, "<p>Hello</p>", set: ["sid=2; Path=/; Max-Age=600", "\(token)=2; Path=/; Max-Age=60"],
                sends: "\(token)=1; pre=1", form: "user=ann-u"),
        ])
        return try await rig.logIn(Portal.login(rules))
    }

    private func line(_ session: Session, callers: String? = nil) throws -> String? {
        let url = try #require(WebURL(Portal.address))
        return session.cookies?.merged(with: callers.map { [$0] } ?? [], for: url, now: LoginRig.now).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    private func take(_ session: Session, _ line: String) throws -> Bool? {
        session.cookies?.take(line, from: try #require(WebURL(Portal.address)), now: LoginRig.now)
    }

    @Test("a login's cookies belong to the session, and a well-known anti-forgery token to callers too")
    func byDefault() async throws {
        let session = try await logIn(rules())
        #expect(try line(session) == "csrftoken=2; pre=1; sid=2")
        #expect(try line(session, callers: "csrftoken=mine; pre=mine; sid=mine") == "pre=1; sid=2; csrftoken=mine")
        #expect(try take(session, "csrftoken=3; Path=/") == false)
        #expect(try take(session, "sid=3; Path=/") == true && take(session, "pre=3; Path=/") == true)
        #expect(session.expiresAt == LoginRig.now + 600_000, "the session does not end with the token")
    }

    @Test("a login's cookies reach callers only by their configured names")
    func configured() async throws {
        let named = try await logIn(rules(["bank-csrf"]), token: "bank-csrf")
        #expect(try line(named, callers: "bank-csrf=mine") == "pre=1; sid=2; bank-csrf=mine")
        let none = try await logIn(rules([]))
        #expect(try line(none, callers: "csrftoken=mine") == "csrftoken=2; pre=1; sid=2")
        #expect(try take(none, "csrftoken=3; Path=/") == true)
    }

    @Test("a login whose cookies all go to callers establishes no session")
    func nothingLeft() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, "Please log in"),
            Portal.post("/in", 200, "<p>Hello</p>", set: ["sid=2; Path=/"], sends: nil, form: "user=ann-u"),
        ])
        let failure = await rig.expectUnknown(try Portal.login(rules(["sid"])))
        #expect(failure.detail.contains("cookies.pass"))
    }
}
