// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import Secrets
import Synchronization
import TestSupport
import Testing

@testable import ChallengeHandling

/// Login helpers with scripted answers.
private final class ScriptedHelpers: LoginHelpers {
    private let answers: Mutex<[Result<String, LoginHelperError>]>
    private let asked = Mutex<[LoginHelperQuestion]>([])

    init(_ answers: [Result<String, LoginHelperError>]) { self.answers = Mutex(answers) }

    var questions: [String] { asked.withLock { $0.map { $0.text.revealText() } } }

    func answer(
        of helper: LoginHelper, to question: LoginHelperQuestion
    ) async throws(LoginHelperError) -> Secret {
        asked.withLock { $0.append(question) }
        let next = answers.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        guard let next else { throw LoginHelperError(reason: "asked too often", publicReason: "asked too often") }
        return Secret(try next.get())
    }
}

@Suite("Logins by a helper")
struct HelperLoginTests {
    private static let rules = GatewayRules(
        detect: [ResponseMatcher(bodyContains: ["app.js"])], steps: [])
    private static let page = "<script src=app.js></script>"

    private func login(
        _ helpers: ScriptedHelpers, rules: GatewayRules = rules, challenged: String? = Portal.address,
        proof: String? = nil, page: String? = nil
    ) throws -> HelperLogin {
        HelperLogin(
            gateway: try Portal.login(rules, challenged: challenged, proof: proof),
            helper: LoginHelper(.program(["/usr/lib/helper"]), timeout: .seconds(30)),
            page: try page.map { try #require(WebURL($0)) },
            helpers: helpers)
    }

    private func helpers(_ answers: String...) -> ScriptedHelpers { ScriptedHelpers(answers.map { .success($0) }) }

    private func shown(sends cookie: String? = nil) -> ScriptedStep {
        Portal.get("/app/home", 200, Self.page, sends: cookie)
    }

    @Test("a helper gets the address and the credential, and its cookies are the session")
    func works() async throws {
        let rig = Portal.rig([shown(), Portal.get(sends: "sid=s3cr3t")])
        let helpers = helpers(
            #"{"cookies":[{"name":"sid","value":"s3cr3t","domain":"portal.example.com","path":"/","secure":true}]}"#)
        let session = try await rig.logIn(login(helpers))
        #expect(try rig.cookies(of: session) == "sid=s3cr3t" && session.isRenewedAhead)
        #expect(
            helpers.questions == [
                #"{"challenge":"portal","fields":{"password":"pass\"word","username":"ann-u"},"#
                    + #""origin":"https://portal.example.com","timeout":30,"#
                    + #""url":"https://portal.example.com/app/home","version":1}"# + "\n"
            ])
        #expect(!rig.steps.joined().contains("s3cr3t"))
        #expect(rig.latches.all.isEmpty)
    }

    @Test("a configured page is opened by the helper alone, and the upstream's address proves the session")
    func named() async throws {
        let rig = Portal.rig([Portal.get(sends: "sid=1")])
        let helpers = helpers(#"{"cookies":[{"name":"sid","value":"1"}],"expires_in":60}"#)
        let session = try await rig.logIn(login(helpers, page: "https://portal.example.com/login"))
        #expect(session.expiresAt == LoginRig.now + 60_000)
        #expect(helpers.questions.first?.contains(#""url":"https://portal.example.com/login""#) == true)
    }

    @Test("a cookie for another host, and one that the origin may not set, are refused")
    func foreignCookies() async throws {
        let rig = Portal.rig([shown(), Portal.get(sends: "sid=1")])
        let helpers = helpers(
            """
            {"cookies":[{"name":"other","value":"x","domain":"id.example.com"},{"name":"top","value":"x","domain":".com"},
            {"name":"__Host-a","value":"x","path":"/app","secure":true},{"name":"sid","value":"1"}]}
            """)
        let session = try await rig.logIn(login(helpers))
        #expect(try rig.cookies(of: session) == "sid=1")
        for name in ["other", "top", "__Host-a"] {
            #expect(rig.steps.contains { $0.contains("the cookie \(name) was refused") }, "\(rig.steps)")
        }
    }

    @Test("a helper's fields fill the templates of `inject`, and no other field is taken")
    func fields() async throws {
        var rules = Self.rules
        rules.inject = [.init(name: .authorization, value: try TextTemplate("Bearer {token}"))]
        let rig = Portal.rig([
            shown(),
            ScriptedStep(.get, Portal.address, .success(SideResponse(status: 200))) {
                $0.fields[.authorization] == "Bearer t0k"
            },
        ])
        let helpers = helpers(#"{"fields":{"token":"t0k","Host":"evil.example","Content-Length":"0"}}"#)
        let session = try await rig.logIn(login(helpers, rules: rules))
        #expect(session.fields == [InjectedField(name: .authorization, value: Secret("Bearer t0k"))])
        #expect(rig.steps.contains { $0.contains("the field Host was refused") })
        let other = Portal.rig([shown()])
        let failure = await other.expectUnknown(
            try login(self.helpers(#"{"fields":{"tok":"t0k"}}"#), rules: rules))
        #expect(failure.detail.contains("no field token"))
    }

    @Test(
        "a helper's wrong password or locked account closes the latch, and the helper is not asked again",
        arguments: [
            ("wrong-password", LoginFailure.Code.rejected), ("locked", .accountLocked), ("password-expired", .rejected),
        ])
    func rejected(word: String, code: LoginFailure.Code) async throws {
        let rig = Portal.rig([shown()])
        let helpers = helpers(#"{"error":"\#(word)","message":"said of pass\"word and pass\\\"word"}"#)
        let login = try login(helpers)
        let failure = await rig.lose(login)
        #expect(failure.code == code && failure.cause.contains("/usr/lib/helper"), "\(failure)")
        #expect(failure.cause.contains("said of <redacted> and <redacted>"), "\(failure.cause)")
        #expect(await rig.lose(login).code != failure.code || code == .accountLocked)
        #expect(helpers.questions.count == 1 && rig.latches.keys == [Portal.key])
    }

    @Test(
        "any other error of a helper says nothing about the credential",
        arguments: [
            #"{"error":"unavailable"}"#, #"{"error":"too-many-sessions"}"#, #"{"error":"crashed"}"#, "nonsense", "{}",
            #"{"cookies":[{"name":"sid","value":"1","domain":"id.example.com"}]}"#,
        ])
    func unknown(answer: String) async throws {
        _ = await Portal.rig([shown()]).expectUnknown(try login(helpers(answer)))
    }

    @Test("a helper without an answer says nothing about the credential, and a late one is a timeout")
    func noAnswer() async throws {
        for (isTimeout, code) in [(false, LoginFailure.Code.failed), (true, .timedOut)] {
            let helpers = ScriptedHelpers([
                .failure(
                    LoginHelperError(reason: "/usr/lib/helper: died", publicReason: "it died", isTimeout: isTimeout))
            ])
            let failure = await Portal.rig([shown()]).expectUnknown(try login(helpers), code)
            #expect(failure.cause == "/usr/lib/helper: died" && !failure.detail.contains("/usr/lib"))
        }
    }

    @Test("a session that a configured address does not accept is a rejection, whatever the helper says")
    func disproved() async throws {
        let rig = Portal.rig([shown(), shown(sends: "sid=1"), shown()])
        let helpers = helpers(#"{"cookies":[{"name":"sid","value":"1"}]}"#)
        let login = try login(helpers)
        #expect(await rig.lose(login).code == .rejected)
        #expect(await rig.lose(login).code == .latched)
        #expect(helpers.questions.count == 1)
    }

    @Test("a page that only the caller has met is never opened, because its scripts are not trusted")
    func challenged() async throws {
        let rig = LoginRig(
            [Portal.get("/"), Portal.get("/app/home", 200, Self.page)], credentials: [.ann])
        let helpers = helpers(#"{"cookies":[{"name":"sid","value":"1"}]}"#)
        let login = HelperLogin(
            gateway: try Portal.login(
                Self.rules, challenged: "\(Portal.address)?q=1", base: "https://portal.example.com/"),
            helper: LoginHelper(.socket("/run/s")), page: nil, helpers: helpers)
        let failure = await rig.expectUnknown(login)
        #expect(failure.detail.contains("login.page") && helpers.questions.isEmpty)
    }

    @Test("the seed of one-time passwords stays with the daemon, and the helper gets the present one")
    func oneTimePassword() async throws {
        struct Fixed: OneTimePasswords {
            func password(from seed: Secret, of credential: String) -> Secret { Secret("287082") }
            func check(_ seed: Secret, of credential: String) {}
        }
        let ann = Credential(
            name: "ann", fields: ["password": Secret("pw-1"), "totp-seed": Secret("GEZDGNBVGY3TQOJQ")],
            oneTimePasswords: Fixed())
        let question = try await HelperQuestion(
            challenge: "portal", origin: Portal.origin, address: try #require(WebURL(Portal.address)),
            timeout: .seconds(1)
        ).text(ann)
        let text = question.text.revealText()
        #expect(text.contains(#""totp":"287082""#) && !text.contains("GEZD") && !text.contains("seed"))
        #expect(question.secrets.contains(Secret("287082")) && question.secrets.contains(Secret("GEZDGNBVGY3TQOJQ")))
    }
}

@Suite("Answers of login helpers")
struct HelperAnswerTests {
    private func parse(_ text: String) throws(HelperAnswer.Unusable) -> HelperAnswer {
        try HelperAnswer(parsing: Array(text.utf8))
    }

    private func session(_ text: String) throws -> HelperSession {
        guard case .session(let session) = try parse(text) else { throw HelperAnswer.Unusable(reason: "is a failure") }
        return session
    }

    /// Returns the cookie as the portal's host would set it at 1,000 s.
    private func line(_ cookie: String) throws -> String? {
        let session = try session(#"{"cookies":[\#(cookie)]}"#)
        return try #require(session.cookies.first).setCookie(from: "portal.example.com", now: 1_000_000)
    }

    @Test(
        "a helper's cookie becomes the line that the host itself would send",
        arguments: [
            (#"{"name":"sid","value":"a=b, c"}"#, "sid=a=b, c; Path=/"),
            (#"{"name":"sid","value":""}"#, "sid=; Path=/"),
            (#"{"name":"s","value":"1","domain":"Portal.Example.com","path":"/app"}"#, "s=1; Path=/app"),
            (#"{"name":"s","value":"1","domain":".example.com"}"#, "s=1; Path=/; Domain=.example.com"),
            (#"{"name":"s","value":"1","secure":true,"expires":-1}"#, "s=1; Path=/; Secure"),
            (#"{"name":"s","value":"1","expires":1060.9,"httpOnly":true,"size":7}"#, "s=1; Path=/; Max-Age=60"),
            (#"{"name":"s","value":"1","expires":7,"secure":false}"#, "s=1; Path=/; Max-Age=0"),
            (#"{"name":"s","value":"1","expires":1e300}"#, "s=1; Path=/; Max-Age=9223372036854774807"),
            (#"{"name":"s","value":"1","domain":null,"path":null,"expires":null}"#, "s=1; Path=/"),
            (#"{"name":"s","value":"1","domain":"example.com"}"#, nil),
            (#"{"name":"s","value":"1","domain":"id.example.com"}"#, nil),
        ] as [(String, String?)])
    func cookie(json: String, expected: String?) throws {
        #expect(try line(json) == expected)
    }

    @Test(
        "a helper's cookie with a part that could become another is refused",
        arguments: [
            #"{"name":"a b","value":"1"}"#, #"{"name":"","value":"1"}"#, #"{"name":"a=b","value":"1"}"#,
            #"{"name":"a;b","value":"1"}"#, #"{"name":7,"value":"1"}"#, #"{"value":"1"}"#, #"{"name":"a"}"#,
            #"{"name":"a","value":"1; Domain=example.com"}"#, #"{"name":"a","value":"1\r\nX: y"}"#,
            #"{"name":"a","value":"1\u0000"}"#, #"{"name":"a","value":7}"#, #"{"name":"a","value":null}"#,
            #"{"name":"a","value":"1","path":"/;Secure"}"#, #"{"name":"a","value":"1","path":"app"}"#,
            #"{"name":"a","value":"1","domain":".example.com; Path=/"}"#, #"{"name":"a","value":"1","domain":""}"#,
            #"{"name":"a","value":"1","domain":["x"]}"#, #"{"name":"a","value":"1","secure":"yes"}"#,
            #"{"name":"a","value":"1","expires":"soon"}"#, #""a=1""#, "null", "[]",
        ])
    func hostileCookie(json: String) throws {
        #expect(throws: HelperAnswer.Unusable.self) { try session(#"{"cookies":[\#(json)]}"#) }
    }

    @Test(
        "a helper's answer that is not as the protocol says is refused without a word of it",
        arguments: [
            "", "ok", "[]", "7", "{", #"{"cookies":[]} {}"#, "{\"a\":\"\u{0}\"}", #"{"cookies":{}}"#, #"{"fields":[]}"#,
            #"{"fields":{"t":7}}"#, #"{"fields":{"t":"a\r\nX: y"}}"#, #"{"fields":{"t":"ä"}}"#,
            #"{"fields":{"t":" a"}}"#, #"{"fields":{"t":""}}"#, #"{"expires_in":0}"#, #"{"expires_in":-1}"#,
            #"{"expires_in":1.5}"#, #"{"expires_in":"soon"}"#, #"{"error":7}"#, #"{"error":""}"#, #"{"error":{}}"#,
            #"{"cookies":[],"cookies":[]}"#, String(repeating: "[", count: 60_000),
            #"{"fields":{"hunter2":["hunter2"]}}"#,
            #"{"x":""# + String(repeating: "a", count: 65_536) + #""}"#,
            #"{"cookies":["# + Array(repeating: #"{"name":"a","value":"1"}"#, count: 257).joined(separator: ",") + "]}",
        ])
    func unusable(text: String) {
        do {
            _ = try parse(text)
            Issue.record("it was taken: \(text.prefix(80))")
        } catch {
            #expect(!error.reason.contains("hunter2"))
        }
    }

    @Test("a helper's fields and their lifetime are read, and unknown members ignored")
    func fields() throws {
        let read = try session(
            #"{"version":1,"fields":{"token":"t0k en"},"expires_in":"90","cookies":null,"error":null,"new":[{}]}"#)
        #expect(read.fields == ["token": Secret("t0k en")] && read.lifetime == 90 && read.cookies.isEmpty)
        #expect(try session(#"{"expires_in":9999999999}"#).lifetime == 10 * 366 * 86_400)
        #expect(try session("{}") == HelperSession([:]))
    }

    @Test("a helper's error is one that the configuration knows, or another")
    func errors() throws {
        #expect(
            try parse(#"{"error":"wrong-password","message":"no"}"#)
                == .failure(cause: .known(.wrongPassword), message: "no"))
        #expect(try parse(#"{"error":"locked"}"#) == .failure(cause: .known(.locked), message: ""))
        #expect(
            try parse(#"{"error":"Wrong-Password\n","message":7,"cookies":"x"}"#)
                == .failure(cause: .other("Wrong-Password?"), message: ""))
    }
}
