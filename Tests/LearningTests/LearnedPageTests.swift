// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Testing

@testable import Learning

@Suite("Plans that `learn` makes of login pages that are not the ordinary ones")
struct LearnedPageTests {
    private func lines(_ site: SiteScript, _ path: String) async throws -> [String] {
        let findings = try await site.findings(path)
        return try LearnedPlan(findings, kind: LearnedKind(findings), known: []).lines.map(\.text)
    }

    private func defeat(_ site: SiteScript, _ path: String) async throws -> String {
        let findings = try await site.findings(path)
        let error = #expect(throws: LearnDefeat.self) {
            try LearnedPlan(findings, kind: LearnedKind(findings), known: [])
        }
        return error.map { "\($0)" } ?? ""
    }

    @Test("a form with more than a name is learned with all that a browser submits, whatever the page's status")
    func unusual() async throws {
        let form = """
            <form action='' method='post'><select name="auth[driver]"><option value="server" selected>MySQL<option value="pgsql">P</select>
            <input name="auth[server]" value="db {1}"><input name="auth[username]"><input type="password" name="auth[password]">
            <input name="auth[db]"><input type=hidden name=t value=x><input type=checkbox name=keep value=1>
            <input type=submit name=go value=Login></form>
            """
        let site = SiteScript(["/": .page(form, status: 403)])
        let expected = """
            parameters: { auth[username]: "{username}", auth[password]: "{password}", auth[driver]: "server", \
            auth[server]: "db {{1}}", auth[db]: "", go: "Login" }
            """
        let learned = try await lines(site, "/")
        let written = learned.first { $0.contains("parameters:") }?.filter { $0 != "'" } ?? ""
        #expect(
            written.replacing("\"auth", with: "auth").replacing("]\":", with: "]:").contains(expected), "\(learned)")
        #expect(learned.first == "gateway: none" && learned.contains("  fields: hidden"))
    }

    @Test("a form for a new password is submitted with its button")
    func button() async throws {
        let form = """
            <form method=post action=index.php><input name=name><input type=password name=password autocomplete=new-password>
            <button type=submit name=enter value="Enter">Go</button></form>
            """
        let learned = try await lines(SiteScript(["/": .page(form)]), "/")
        #expect(learned.contains { $0.contains("enter: \"Enter\"") }, "\(learned)")
    }

    @Test("a page that refuses is no API, and its login page is found")
    func refusal() async throws {
        let bare = SiteScript(["/": .page("hello"), "/me": .page("<h1>Forbidden</h1>", status: 403)])
        #expect(try await defeat(bare, "/me").contains("the page has no login form"))
        let linked = SiteScript([
            "/": .page("hello"), "/in-login": .loginForm(),
            "/me": .page("<a href=/in-login>in</a>", status: 403),
        ])
        #expect(try await lines(linked, "/me").contains("login: { page: /in-login }"))
    }

    @Test("a page for everybody with a link to the login form is detected by that link")
    func link() async throws {
        let page = "<title>Tree</title><a href='cmd.php?server=1&amp;cmd=login_form'>log on</a>"
        let site = SiteScript(["/": .page(page), "/cmd.php?server=1&cmd=login_form": .loginForm()])
        let learned = try await lines(site, "/")
        #expect(learned.contains("detect: { body-contains: cmd=login_form }"), "\(learned)")
        #expect(learned.contains("login: { page: \"/cmd.php?server=1&cmd=login_form\" }"))
        // A usual address of a login page, to which no link leads, says nothing about an open page.
        let open = SiteScript(["/": .page("hello"), "/login": .loginForm()])
        #expect(try await defeat(open, "/").contains("open to everybody"))
    }

    @Test("a form for the name alone becomes two steps once the next page is known")
    func nameFirst() async throws {
        let name = SideResponse.page(
            "<form method=post action=/login><input type=hidden name=csrf value=1><input name=login><button>Next</button></form>"
        )
        for site in [
            SiteScript(["/": .redirect(to: "/login"), "/login": name]),
            SiteScript(["/": .page("<h1>Forbidden</h1>", status: 403), "/login": name]),
        ] {
            let findings = try await site.findings("/")
            guard case .nameFirst = LearnedKind(findings) else {
                Issue.record("\(LearnedKind(findings))")
                continue
            }
            let plan = try #require(NamePlan(findings))
            #expect(plan.plan(then: nil).lines.count { $0.text.hasPrefix("  - ") } == 1)
            let url = try #require(WebURL("https://www.example.com/password"))
            let page = SideResponse.page(
                "<form method=post><input type=password name=password><input type=submit name=go value=Go></form>")
            let answer = ExaminedResponse(status: 200, fields: page.fields, body: page.body, url: url)
            let lines = plan.plan(then: try plan.next(in: [answer])).lines.map(\.text)
            #expect(
                Array(lines.dropFirst(2).dropLast()) == [
                    "login:", "  - page: \(findings.asked.nameForm == nil ? "/login" : "\"/\"")", "    url: form",
                    "    parameters: { login: \"{username}\" }", "    fields: hidden", "  - url: form",
                    "    parameters: { password: \"{password}\"\(try #require(LoginForm(on: answer)).isStandard ? "" : ", go: \"Go\"") }",
                    "    fields: hidden",
                ], "\(lines)")
            #expect(throws: LearnDefeat.self) { try plan.next(in: []) }
        }
        // A form for a newsletter, and one at another address, ask for no login.
        let letter = SiteScript(["/": .page("<form method=post action=/x><input name=email></form>")])
        #expect(try await defeat(letter, "/").contains("open to everybody"))
    }

    @Test("an application that redirects to its public address is told from a login at another server")
    func publicAddress() async throws {
        let moved = SiteScript(["/app": .redirect(to: "https://apps.example.org/app/"), "/": .page("hello")])
        let text = try await defeat(moved, "/app")
        #expect(text.contains("countersign learn https://apps.example.org/app/") && !text.contains("--through"))
        let away = SiteScript(["/login": .redirect(to: "https://id.example.org/login"), "/": .page("hello")])
        #expect(try await defeat(away, "/login").contains("--through"))
    }
}
