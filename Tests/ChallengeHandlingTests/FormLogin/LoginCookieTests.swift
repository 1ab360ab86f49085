// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import Testing

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

    /// A login whose page and answer set a session's cookie and a token against forged requests, which ends earlier.
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
        #expect(try line(session, callers: "csrftoken=mine; pre=mine; sid=mine") == "csrftoken=mine; pre=1; sid=2")
        #expect(try take(session, "csrftoken=3; Path=/") == false)
        #expect(try take(session, "sid=3; Path=/") == true && take(session, "pre=3; Path=/") == true)
        #expect(session.expiresAt == LoginRig.now + 600_000, "the session does not end with the token")
    }

    @Test("a login's cookies reach callers only by their configured names")
    func configured() async throws {
        let named = try await logIn(rules(["bank-csrf"]), token: "bank-csrf")
        #expect(try line(named, callers: "bank-csrf=mine") == "bank-csrf=mine; pre=1; sid=2")
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
