// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPTypes
import TestSupport
import Testing

@testable import ChallengeHandling

@Suite("Pages after a login that others write")
struct ForeignPageTests {
    private static let form =
        "<form method=post action='/login'><input name=user><input type=password name=pass></form>"
    private static let evil =
        "<form method=post action='/save'><input name=title><input type=password name=text></form>"
    private static let search = "<form action='/search'><input name=q></form>"
    private static let sent = "user=ann-u&pass=pass%22word"

    /// What somebody may have written on the page at which logins end.
    private static let texts = [
        "Wrong name or password", "HPDIA0200W", "account is locked", "please log in", evil, search + form, form + evil,
    ]

    private static func rules(_ preset: GatewayRules = .passwordForm) -> GatewayRules {
        var rules = preset
        rules.markers = [ResponseMatcher(bodyContains: ["please log in"])]
        rules.failed = [
            FailureMatcher(matcher: ResponseMatcher(bodyContains: ["wrong name or password"]), cause: .wrongPassword),
            FailureMatcher(matcher: ResponseMatcher(bodyContains: ["HPDIA0200W"]), cause: .wrongPassword),
            FailureMatcher(matcher: ResponseMatcher(bodyContains: ["locked"]), cause: .locked),
        ]
        return rules
    }

    private static func login(_ rules: GatewayRules = rules(), proof: String? = nil) throws -> GatewayLogin {
        try Portal.login(
            rules, challenged: nil, base: "\(Portal.origin)/", proof: proof.map { "\(Portal.origin)\($0)" })
    }

    /// The way to the login page, and the right password.
    private static let way = [
        Portal.get("/", 302, to: "/login"), Portal.get("/login", 200, form),
        Portal.post("/login", 302, set: ["sid=1; Path=/"], to: "/start", sends: nil, form: sent),
    ]

    @Test(
        "nothing on the page to which a login leads rejects the password, whether it was accepted before or not",
        arguments: texts)
    func landing(_ text: String) async throws {
        let script =
            way + [
                Portal.get("/start", 200, "<p>\(text)</p>", sends: "sid=1"), Portal.get("/", sends: "sid=1"),
            ]
        for rig in [Portal.rig(script), await Portal.acceptedRig(script, path: "/login")] {
            _ = try await rig.logIn(Self.login())
            #expect(rig.latches.all.isEmpty && rig.latches.acceptance(Portal.key, of: .ann) != nil)
        }
    }

    private var way: [ScriptedStep] { Self.way }

    @Test("nor does anything on the start page, at which logins end and are proven", arguments: texts)
    func startPage(_ text: String) async throws {
        let start = Portal.get("/", 200, "<p>\(text)</p>", sends: "sid=1")
        let asksForLogin = text.contains("password") && text.contains("<form") || text.contains("please")
        let script =
            [
                Portal.get("/", 302, to: "/login"), Portal.get("/login", 200, Self.form),
                Portal.post("/login", 302, set: ["sid=1; Path=/"], to: "/", sends: nil, form: Self.sent), start,
            ] + (asksForLogin ? [start] : [])
        for rig in [Portal.rig(script), await Portal.acceptedRig(script, path: "/login")] {
            _ = try await rig.logIn(Self.login())
            #expect(rig.latches.all.isEmpty)
        }
    }

    @Test("`prove-at` decides, whatever stands on the page to which the login leads", arguments: texts)
    func verifiedElsewhere(_ text: String) async throws {
        let rig = Portal.rig(
            [
                Portal.get("/me", 302, to: "/login"), Portal.get("/login", 200, Self.form),
                Portal.post("/login", 302, set: ["sid=1; Path=/"], to: "/start", sends: nil, form: Self.sent),
            ] + [Portal.get("/start", 200, "<p>\(text)</p>", sends: "sid=1"), Portal.get("/me", sends: "sid=1")])
        _ = try await rig.logIn(Self.login(proof: "/me"))
        #expect(rig.latches.all.isEmpty)
    }

    @Test(
        "where the login page comes in place, an accepted password is not rejected by a form that somebody wrote there")
    func inPlace() async throws {
        let page = Portal.get("/", 200, Self.form)
        for text in [Self.evil, Self.search + Self.form, "please log in" + Self.search] {
            let start = Portal.get("/", 200, text, sends: "sid=1")
            let rig = await Portal.acceptedRig(
                [
                    page, Portal.post("/login", 302, set: ["sid=1; Path=/"], to: "/", sends: nil, form: Self.sent),
                    start,
                    start,
                ], path: "/login")
            _ = try await rig.logIn(Self.login())
            #expect(rig.latches.all.isEmpty, "\(text)")
        }
    }

    @Test("a servlet container's right password is not rejected by a form that somebody wrote, once it was accepted")
    func servletContainer() async throws {
        let form =
            "<form method=post action=j_security_check><input name=j_username><input type=password name=j_password></form>"
        let start = Portal.get("/app/home", 200, Self.search + form, sends: "JSESSIONID=2")
        let rig = await Portal.acceptedRig([
            Portal.get("/app/home", 200, form, set: ["JSESSIONID=1; Path=/app"]),
            Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/home").status(302), start,
        ])
        let failure = await rig.expectUnknown(try Portal.login())
        #expect(failure.retryAt == LoginRig.now + 60_000, "login-failed, and no latch")
    }

    @Test("a wrong password is rejected at once all the same: in the answer, and by the way back to the login page")
    func wrong() async throws {
        let answers = [
            Portal.post("/login", 200, "Wrong name or password", sends: nil, form: Self.sent),
            Portal.post("/login", 200, Self.form, sends: nil, form: Self.sent),
            Portal.post("/login", 302, to: "/login?error", sends: nil, form: Self.sent),
        ]
        for (index, answer) in answers.enumerated() {
            let back = index == 2 ? [Portal.get("/login", 200, Self.form)] : []
            let script = [Portal.get("/", 302, to: "/login"), Portal.get("/login", 200, Self.form), answer] + back
            await Portal.rig(script).expectRejection(try Self.login())
            await Portal.acceptedRig(script, path: "/login").expectRejection(try Self.login())
        }
    }
}

@Suite("Answers that may conceal a login page")
struct ConcealedPageTests {
    private func conceals(
        _ rules: [ResponseMatcher], _ status: Int, _ type: String?, head isHead: Bool = false,
        _ fields: HTTPFields = [:]
    ) -> Bool {
        var fields = fields
        if let type { fields[.contentType] = type }
        let response = ExaminedResponse(
            status: status, fields: fields, method: isHead ? .head : .get,
            url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        return GatewayDetector(GatewayRules(detect: rules, steps: [])).mayConceal(response)
    }

    private let form = [ResponseMatcher(formAction: "j_security_check")]

    @Test("the answer to HEAD conceals a page of its type and status")
    func head() {
        #expect(conceals(form, 200, "text/html", head: true) && conceals(form, 404, "Text/HTML; charset=x", head: true))
        #expect(conceals(form, 200, nil, head: true))
        #expect(!conceals(form, 200, "image/png", head: true) && !conceals(form, 302, "text/html", head: true))
        #expect(!conceals(form, 503, "text/html", head: true) && !conceals(form, 429, "text/html", head: true))
        let login = [ResponseMatcher(statuses: [401], formAction: "/login")]
        #expect(conceals(login, 401, "text/html", head: true) && !conceals(login, 200, "text/html", head: true))
    }

    @Test("a part conceals a page of its type, and parts of several types conceal any page")
    func parts() throws {
        #expect(conceals(form, 206, "text/html") && conceals(form, 206, nil))
        #expect(conceals(form, 206, "multipart/byteranges; boundary=x"))
        #expect(!conceals(form, 206, "application/octet-stream"))
        let json = [ResponseMatcher(json: [JSONMatcher(pointer: try #require(JSONPointer("/error")))])]
        #expect(conceals(json, 206, "application/json") && !conceals(json, 206, "text/html"))
    }

    @Test("304, 412 and 416 conceal any page of a status that has preconditions and parts", arguments: [304, 412, 416])
    func everything(status: Int) {
        #expect(conceals(form, status, nil) && conceals(form, status, "application/x-tar", head: true))
        #expect(conceals([ResponseMatcher(statuses: [200], cookies: ["S"])], status, nil))
        #expect(!conceals([ResponseMatcher(statuses: [401], bodyContains: ["x"])], status, nil))
        #expect(!conceals([ResponseMatcher(statuses: [302], redirectTo: ["/login"])], status, nil))
    }

    @Test("a whole page conceals nothing, whatever its status", arguments: [200, 201, 401, 403, 404, 500])
    func whole(status: Int) {
        #expect(!conceals(form, status, "text/html"))
    }

    @Test("the answer to a request with effects conceals nothing: it is not asked for again")
    func effects() {
        let response = ExaminedResponse(
            status: 412, method: .put, url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        #expect(!GatewayDetector(.jSecurityCheck).mayConceal(response))
    }

    @Test("challenges in status and fields need no look")
    func others() {
        let response = ExaminedResponse(
            status: 304, url: WebURL(origin: Origin(scheme: .http, host: "h"), path: "/"))
        #expect(!BearerDetector(realm: nil).mayConceal(response))
        #expect(GatewayDetector(.passwordForm).mayConceal(response) && GatewayDetector(.webSEAL).mayConceal(response))
    }
}
