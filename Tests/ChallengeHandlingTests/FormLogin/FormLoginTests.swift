// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Form login of Java EE servers")
struct FormLoginTests {
    private static let page = Portal.get("/app/home", 200, Portal.form, set: ["JSESSIONID=1; Path=/app; HttpOnly"])

    @Test("Tomcat: page, form, 303 to the saved address with a new identifier, which is followed once")
    func tomcat() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(set: ["JSESSIONID=2; Path=/app; HttpOnly"], to: Portal.address).status(303),
            Portal.get(sends: "JSESSIONID=2"),
        ])
        let session = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: session) == "JSESSIONID=2")
        #expect(try rig.cookies(of: session, at: "https://portal.example.com/other") == nil)
        #expect(session.expiresAt == nil)
        #expect(
            rig.steps == [
                "page: 200", "the login page is /app/home, by form-action j_security_check", "form: 303",
                "the login seems to have worked: the answer sets new cookies and redirects", "redirect: 200",
                "the login worked: its redirect leads to /app/home, which shows no login page any more",
            ])
    }

    @Test(
        "the status of the saved address after a login does not matter", arguments: [204, 401, 403, 404, 405])
    func otherStatus(_ status: Int) async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(to: "/app/home").status(302), Portal.get("/app/home", status, sends: "JSESSIONID=1"),
        ])
        _ = try await rig.logIn(Portal.login())
    }

    @Test("Tomcat: an error page without a form is a rejection, also if `login.url` names the address of the form")
    func configuredAddress() async throws {
        var rules = GatewayRules.jSecurityCheck
        rules.steps[0].target = .address("/app/j_security_check")
        let rig = Portal.rig([
            Portal.get("/", 200, "<p>Public</p>"), Self.page,
            Portal.post("/app/j_security_check", 200, "<p>Wrong password</p>"),
            Portal.get("/app/home", 200, Portal.form, sends: "JSESSIONID=1"),
        ])
        await rig.expectRejection(try Portal.login(rules, base: "\(Portal.origin)/"))
    }

    @Test("Tomcat and Undertow: an error page with 200 is not a success, and the login page after it is a rejection")
    func errorPage() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post("/app/j_security_check", 200, "<p>Wrong password</p>"),
            Portal.get("/app/home", 200, Portal.form, sends: "JSESSIONID=1"),
        ])
        await rig.expectRejection(try Portal.login())
        #expect(
            rig.steps.contains { $0.hasSuffix(": /app/home shows the login page after it") },
            "the sign that decided is told")
    }

    @Test(
        "the login page again in answer to the form is a rejection, whatever its status",
        arguments: [200, 400, 401, 403])
    func formAgain(_ status: Int) async throws {
        let rig = Portal.rig([Self.page, Portal.post("/app/j_security_check", status, Portal.form)])
        await rig.expectRejection(try Portal.login())
        #expect(
            rig.steps.contains { $0.hasSuffix(": the answer is the login page again") }, "the sign that decided is told"
        )
    }

    @Test("Jetty: the redirect to the login page is followed to its form, and success leads to the saved address")
    func jetty() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, set: ["JSESSIONID=1;Path=/app"], to: "/app/login.html"),
            Portal.get("/app/login.html", 200, Portal.form, sends: "JSESSIONID=1"),
            Portal.post(to: Portal.address).status(302), Portal.get(sends: "JSESSIONID=1"),
        ])
        let established = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: established) == "JSESSIONID=1")
    }

    @Test("Jetty: the redirect to the error page is a rejection, once the saved address shows the login page again")
    func jettyWrong() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, set: ["JSESSIONID=1;Path=/app"], to: "/app/login.html"),
            Portal.get("/app/login.html", 200, Portal.form, sends: "JSESSIONID=1"),
            Portal.post(to: "/app/error.html").status(302),
            Portal.get("/app/error.html", 200, "<p>Wrong</p>", sends: "JSESSIONID=1"),
            Portal.get("/app/home", 302, to: "/app/login.html", sends: "JSESSIONID=1"),
            Portal.get("/app/login.html", 200, Portal.form, sends: "JSESSIONID=1"),
        ])
        await rig.expectRejection(try Portal.login())
    }

    @Test("Jetty and Liberty without an error page: 403 and 401 to the form are rejections", arguments: [401, 403])
    func status(_ status: Int) async throws {
        let rig = Portal.rig([Self.page, Portal.post("/app/j_security_check", status, "<p>No</p>")])
        await rig.expectRejection(try Portal.login())
        #expect(
            rig.steps.contains { $0.hasSuffix(": the answer has status \(status)") }, "the sign that decided is told")
    }

    @Test("Jetty: success without a saved address leads to the root, and the challenged address is the proof")
    func contextRoot() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: "/app/").status(302),
            Portal.get("/app/", sends: "JSESSIONID=2"), Portal.get(sends: "JSESSIONID=2"),
        ])
        let established = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: established) == "JSESSIONID=2")
    }

    @Test("Liberty: the token is the session; the cookies of the way there are not sent later")
    func liberty() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 302, set: ["WASReqURL=https:///app/home; Path=/; HttpOnly"], to: "/app/login.jsp"),
            Portal.get(
                "/app/login.jsp", 200, Portal.form, set: ["JSESSIONID=0000x; Path=/"],
                sends: "WASReqURL=https:///app/home"),
            Portal.post(
                set: ["LtpaToken2=abc==; Path=/; HttpOnly", "WASPostParam=x; Path=/"], to: Portal.address,
                sends: "WASReqURL=https:///app/home; JSESSIONID=0000x"
            ).status(302),
            Portal.get(
                sends: "WASReqURL=https:///app/home; JSESSIONID=0000x; LtpaToken2=abc==; WASPostParam=x"),
        ])
        let session = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: session) == "JSESSIONID=0000x; LtpaToken2=abc==")
    }

    @Test("Undertow: no redirect where nothing was saved, and a session all the same")
    func undertow() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(set: ["JSESSIONID=2; Path=/app"]), Portal.get(sends: "JSESSIONID=2"),
        ])
        let established = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: established) == "JSESSIONID=2")
    }

    @Test("an answer that says nothing about the password latches nothing", arguments: [400, 408, 429, 500, 503])
    func trouble(_ status: Int) async throws {
        let rig = Portal.rig([Self.page, Portal.post("/app/j_security_check", status, "<p>Too late</p>")])
        let failure = await rig.expectUnknown(try Portal.login())
        #expect(failure.detail.contains("\(status)"))
    }

    @Test("a login form without an answer is an unknown outcome, and a timeout is reported as one")
    func noAnswer() async throws {
        for (kind, code) in [
            (SideRequestError.Kind.timedOut, LoginFailure.Code.timedOut), (.unreachable, .failed), (.tls, .upstreamTLS),
        ] {
            let lost = Portal.post().replying(.failure(SideRequestError(kind, reason: "gone")))
            let rig = Portal.rig([Self.page, lost])
            _ = await rig.expectUnknown(try Portal.login(), code)
        }
    }

    @Test("the timeout of login pages is that of the form")
    func timeout() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(to: Portal.address).status(303), Portal.get(sends: "JSESSIONID=1"),
        ])
        var rules = GatewayRules.jSecurityCheck
        rules.steps[0].timeout = .seconds(40)
        _ = try await rig.logIn(Portal.login(rules))
        #expect(rig.requests.sent.map(\.timeout) == [.seconds(40), .seconds(40), .seconds(40)])
    }

    @Test("a login form has a timeout of ten seconds, follows no redirect, and sends Origin and Referer")
    func request() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(to: Portal.address).status(303), Portal.get(sends: "JSESSIONID=1"),
        ])
        _ = try await rig.logIn(Portal.login())
        let form = try #require(rig.requests.sent.first { $0.method == .post })
        #expect(form.timeout == .seconds(10) && !form.allowsPartialBody)
        #expect(form.fields[.contentType] == "application/x-www-form-urlencoded")
        #expect(form.fields[.origin] == "https://portal.example.com")
        #expect(form.fields[.referer] == Portal.address)
        #expect(!rig.requests.sent.contains { $0.method == .get && !$0.allowsPartialBody })
    }

    @Test("a redirect to another server after the form is not followed; the challenged address is requested instead")
    func elsewhere() async throws {
        let rig = Portal.rig([
            Self.page, Portal.post(to: "https://evil.example.com/app/home").status(302),
            Portal.get(sends: "JSESSIONID=1"),
        ])
        _ = try await rig.logIn(Portal.login())
    }

    @Test("a redirect to another server on the way to the page is not followed, and nothing is filled in there")
    func pageElsewhere() async throws {
        let rig = Portal.rig([Portal.get("/app/home", 302, to: "https://evil.example.com/app/home")])
        _ = await rig.expectUnknown(try Portal.login())
    }

    @Test("an endless response after a login that worked does not block the session")
    func stream() async throws {
        let endless = Portal.get(sends: "JSESSIONID=2").replying(
            .failure(SideRequestError(.timedOut, reason: "it streams")))
        let rig = Portal.rig([
            Self.page, Portal.post(set: ["JSESSIONID=2; Path=/app"], to: Portal.address).status(303), endless,
        ])
        let established = try await rig.logIn(Portal.login())
        #expect(try rig.cookies(of: established) == "JSESSIONID=2")
    }

    @Test("a redirect whose page is lost shows nothing where no cookie came with it: it may lead to the form again")
    func lostRedirect() async throws {
        let lost = Portal.get("/app/login", sends: "JSESSIONID=1").replying(
            .failure(SideRequestError(.unreachable, reason: "gone")))
        let rig = Portal.rig([
            Self.page, Portal.post(to: "/app/login?error=1").status(303), lost, lost,
        ])
        _ = await rig.expectUnknown(try Portal.login())
    }

    @Test("without a login page no secret is sent")
    func noPage() async throws {
        let rig = Portal.rig([Portal.get()])
        _ = await rig.expectUnknown(try Portal.login())
        let failing = Portal.rig([Portal.get("/app/home", 503, "<p>maintenance</p>")])
        _ = await failing.expectUnknown(try Portal.login())
        let circle = Portal.rig((0...20).map { _ in Portal.get("/app/home", 302, to: "/app/home") })
        _ = await circle.expectUnknown(try Portal.login())
    }

    @Test("a form that goes to another server gets no secret, nor does one of a credential that lacks a field")
    func foreignAction() async throws {
        let form = #"<form action="https://evil.example.com/j_security_check">"#
        let rig = Portal.rig([Portal.get("/app/home", 200, form)])
        _ = await rig.expectUnknown(try Portal.login())
        let based = #"<base href="//evil.example.com/"><form action="j_security_check">"#
        _ = await Portal.rig([Portal.get("/app/home", 200, based)]).expectUnknown(try Portal.login())
        var rules = GatewayRules.jSecurityCheck
        rules.steps[0].parameters.append(.init(name: "pin", value: try TextTemplate("{pin}")))
        let failure = await Portal.rig([]).lose(try Portal.login(rules))
        #expect(failure.code == .noCredential && failure.detail.contains("\"pin\""))
    }

    @Test("before any challenge the login page is requested at the upstream's own address")
    func ahead() async throws {
        let rig = Portal.rig([
            Portal.get("/app/", 200, Portal.form, set: ["JSESSIONID=1"]), Portal.post(to: "/app/").status(303),
            Portal.get("/app/", sends: "JSESSIONID=1"),
        ])
        _ = try await rig.logIn(Portal.login(challenged: nil, base: "\(Portal.origin)/app/"))
    }

    @Test("a login that sets no cookie establishes no session")
    func noCookie() async throws {
        let rig = Portal.rig([
            Portal.get("/app/home", 200, Portal.form), Portal.post(to: Portal.address, sends: nil).status(303),
            Portal.get(),
        ])
        _ = await rig.expectUnknown(try Portal.login())
    }
}

extension ScriptedStep {
    /// Returns this step with another status of its reply.
    func status(_ status: Int) -> ScriptedStep {
        guard case .success(var response) = reply else { return self }
        response.status = status
        return replying(.success(response))
    }
}
