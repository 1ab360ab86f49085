// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("The preset `form`")
struct AnyLoginFormTests {
    private static let page = """
        <form action=/search><input name=q></form>
        <form method=post action="/login/?next=/app/home"><input type=hidden name=csrf value=t1><input name=user>
        <input type=password name=pass><button name=go value=1>Log in</button></form>
        """
    private static let form = "csrf=t1&go=1&user=ann-u&pass=pass%22word"

    private func response(
        _ status: Int, _ location: String? = nil, body: String? = nil, type: String = "text/html"
    ) throws -> ExaminedResponse {
        var fields: HTTPFields = [.contentType: type]
        fields[.location] = location
        return ExaminedResponse(
            status: status, fields: fields, body: body.map { Array($0.utf8) }, method: .get,
            url: try #require(WebURL(Portal.address)))
    }

    @Test("a login page needs no configuration: its form is filled in as a browser would")
    func login() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, to: "/login/?next=/app/home"),
            Portal.get("/login/", 200, Self.page, set: ["pre=1; Path=/"]),
            Portal.post("/login/", 302, set: ["sid=2; Path=/"], to: "/app/home", sends: "pre=1", form: Self.form),
            Portal.get(sends: "pre=1; sid=2"),
        ])
        let session = try await rig.logIn(Portal.login(.passwordForm))
        #expect(try rig.cookies(of: session) == "pre=1; sid=2")
        #expect(
            rig.steps.contains {
                $0.contains("the login form goes to /login/, the password to pass, the user's name to user")
            },
            "the step says what was recognised: \(rig.steps)")
    }

    @Test("the same form again after the submission is a rejection, and the value is not sent again")
    func rejected() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, Self.page),
            Portal.post("/login/", 200, Self.page, sends: nil, form: Self.form),
        ])
        await rig.expectRejection(try Portal.login(.passwordForm))
    }

    @Test("a redirect to an address with `login` in it after the submission is no rejection")
    func redirectAfterwards() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, Self.page),
            Portal.post("/login/", 302, set: ["sid=2; Path=/"], to: "/login/done", sends: nil, form: Self.form),
            Portal.get("/login/done", 200, "<p>Hello</p>", sends: "sid=2"), Portal.get(sends: "sid=2"),
        ])
        _ = try await rig.logIn(Portal.login(.passwordForm))
    }

    @Test("nothing is sent to a form at another origin")
    func otherOrigin() async throws {
        let page =
            "<form method=post action='https://evil.example.com/'><input name=u><input type=password name=p></form>"
        let rig = Portal.rig([Portal.get("/app/home", 200, page)])
        _ = await rig.expectUnknown(try Portal.login(.passwordForm))
        #expect(!rig.requests.sent.contains { $0.method == .post })
    }

    @Test("a login form and a redirect within the origin towards a login page start a login")
    func detected() throws {
        let detector = GatewayDetector(.passwordForm)
        #expect(detector.examine(try response(200, body: Self.page), hasSession: false) == .challenged())
        #expect(detector.examine(try response(200), hasSession: false) == .needsBody)
        for location in ["/login/?next=/", "https://portal.example.com/users/sign_in", "/Special:UserLogin"] {
            #expect(detector.examine(try response(302, location), hasSession: false) == .challenged(), "\(location)")
        }
    }

    @Test(
        "other redirects, pages and data start no login",
        arguments: ["/home", "https://idp.example.com/login", "/search?q=login", "/home#login"])
    func passed(_ location: String) throws {
        let detector = GatewayDetector(.passwordForm)
        #expect(detector.examine(try response(302, location), hasSession: false) == .pass)
        #expect(detector.examine(try response(200, body: "<form><input name=q></form>"), hasSession: false) == .pass)
        let data = try response(200, body: Self.page, type: "application/json")
        #expect(detector.examine(data, hasSession: false) == .pass)
    }
}
