// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Secrets
import TestSupport
import Testing

@Suite("Answers of real applications to their login forms")
struct RealAnswersTests {
    private typealias Answer = RealApplication.Answer

    private static let again = Answer(status: 200, hasForm: true)

    /// Answers measured with Django 5.2, Tomcat 10.1, Apache 2.4 and the packages of Debian 12 and PyPI.
    private static let applications: [RealApplication] = [
        RealApplication(
            name: "Django admin", anonymous: .redirect, page: "/admin/login/", action: "/admin/login/?next=/admin/",
            right: Answer(status: 302, location: "/home", setsCookie: true), wrong: again),
        RealApplication(
            name: "Tomcat", anonymous: .inPlace(200), page: "/home", action: "j_security_check;jsessionid=1",
            user: "j_username", password: "j_password", right: Answer(status: 303, location: "/home", setsCookie: true),
            wrong: Answer(status: 200), isServletContainers: true),
        RealApplication(
            name: "Tomcat, the form as error page", anonymous: .inPlace(200), page: "/home", action: "j_security_check",
            user: "j_username", password: "j_password", right: Answer(status: 303, location: "/home", setsCookie: true),
            wrong: again, isServletContainers: true),
        RealApplication(
            name: "mod_auth_form, redirect", anonymous: .redirect, page: "/login.html", action: "/dologin.html",
            isNewName: true, right: Answer(status: 302, location: "/home", setsCookie: true),
            wrong: Answer(status: 302, location: "/login.html")),
        RealApplication(
            name: "mod_auth_form, inline", anonymous: .inPlace(401), page: "/home", action: "", isNewName: true,
            right: Answer(status: 200, setsCookie: true), wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "mod_auth_form, login handler", anonymous: .inPlace(401), page: "/home", action: "/dologin.html",
            isNewName: true, right: Answer(status: 302, location: "/home", setsCookie: true),
            wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "DokuWiki", anonymous: .inPlace(200), page: "/home", action: "/home?id=start", user: "u",
            password: "p",
            right: Answer(status: 302, location: "/home", setsCookie: true), wrong: Answer(status: 403, hasForm: true)),
        RealApplication(
            name: "MediaWiki", anonymous: .page(200), page: "/index.php/Login", action: "/index.php/Special:UserLogin",
            right: Answer(status: 302, location: "/index.php/Main_Page", setsCookie: true), wrong: again),
        RealApplication(
            name: "WordPress", anonymous: .redirect, page: "/wp-login.php", action: "/wp-login.php", user: "log",
            password: "pwd", right: Answer(status: 302, location: "/home", setsCookie: true), wrong: again),
        RealApplication(
            name: "phpMyAdmin", anonymous: .inPlace(200), page: "/home", action: "home?route=/", user: "pma_username",
            password: "pma_password", right: Answer(status: 302, location: "/home?route=/", setsCookie: true),
            wrong: Answer(status: 200, setsCookie: true, hasForm: true)),
        RealApplication(
            name: "Roundcube", anonymous: .inPlace(200), page: "/home", action: "/home?_task=login", user: "_user",
            password: "_pass", right: Answer(status: 302, location: "/home?_task=mail", setsCookie: true),
            wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "Adminer", anonymous: .inPlace(403), page: "/home", action: "",
            more: "<select name='auth[driver]'></select>",
            right: Answer(status: 302, location: "/home", setsCookie: true),
            wrong: Answer(status: 302, location: "/home", setsCookie: true)),
        RealApplication(
            name: "Icinga Web 2", anonymous: .redirect, page: "/authentication/login", action: "/authentication/login",
            right: Answer(status: 302, location: "/account", setsCookie: true), wrong: again),
        RealApplication(
            name: "Shaarli", anonymous: .redirect, action: "", user: "login",
            right: Answer(status: 302, location: "", setsCookie: true), wrong: again),
        RealApplication(
            name: "Request Tracker", anonymous: .redirect, page: "/NoAuth/Login.html", action: "/NoAuth/Login.html",
            user: "user", password: "pass", right: Answer(status: 302, location: "/Prefs/Other.html", setsCookie: true),
            wrong: again),
        RealApplication(
            name: "Zabbix", anonymous: .page(200), page: "/index.php", action: "index.php", user: "name",
            right: Answer(status: 302, location: "zabbix.php?action=dashboard.view", setsCookie: true),
            wrong: Answer(status: 200, setsCookie: true, hasForm: true)),
        RealApplication(
            name: "Tiny Tiny RSS", anonymous: .inPlace(200), page: "/home", action: "public.php?return=/",
            more: "<select name=profile></select>", user: "login", isNewName: true,
            right: Answer(status: 302, location: "/home", setsCookie: true),
            wrong: Answer(status: 302, location: "/home", setsCookie: true)),
        RealApplication(
            name: "JupyterHub", anonymous: .redirect, page: "/hub/login", action: "/hub/login?next=%2Fhub%2Fhome",
            right: Answer(status: 302, location: "/hub/home", setsCookie: true),
            wrong: Answer(status: 403, hasForm: true)),
        RealApplication(
            name: "Jupyter Server", anonymous: .page(403), action: "/login?next=%2F", user: nil, isNewName: true,
            right: Answer(status: 302, location: "/", setsCookie: true), wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "ESPHome", anonymous: .redirect, action: "./login", isNewName: true,
            right: Answer(status: 302, location: "./", setsCookie: true), wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "Flask-AppBuilder", anonymous: .redirect, page: "/login/", action: "",
            right: Answer(status: 302, location: "/users/list/", setsCookie: true),
            wrong: Answer(status: 302, location: "/login/?next=/users/list/", setsCookie: true)),
        RealApplication(
            name: "changedetection.io", anonymous: .redirect, action: "/login", user: nil,
            right: Answer(status: 302, location: "/settings", setsCookie: true),
            wrong: Answer(status: 302, location: "/login?redirect=/settings", setsCookie: true)),
        RealApplication(
            name: "Calibre-Web", anonymous: .redirect, action: "",
            right: Answer(status: 302, location: "/admin/dbconfig", setsCookie: true),
            wrong: Answer(status: 401, hasForm: true)),
        RealApplication(
            name: "Supysonic", anonymous: .redirect, page: "/user/login", action: "", user: "user", isNewName: true,
            right: Answer(status: 302, location: "/", setsCookie: true), wrong: again),
    ]

    private func login(_ application: RealApplication, proof: Bool) throws -> GatewayLogin {
        var rules = application.isServletContainers ? GatewayRules.jSecurityCheck : .passwordForm
        if case .page = application.anonymous { rules.steps[0].page = application.page }
        let home = "\(Portal.origin)\(application.home)"
        return try Portal.login(rules, challenged: nil, base: home, proof: proof ? home : nil)
    }

    private func conversation(_ server: InstalledApplication, _ gate: LocalGate) -> Conversation {
        Conversation(
            sideRequests: server, credentials: Credentials([.ann]), attempts: gate, state: MemoryStore(),
            now: { LoginRig.now })
    }

    @Test("the right password is accepted, before and after it was accepted once", arguments: applications)
    func right(_ application: RealApplication) async throws {
        for proof in [false, true] {
            let gate = LocalGate()
            for _ in 0..<2 {
                let server = InstalledApplication(application, isRight: true)
                _ = try await login(application, proof: proof).logIn(conversation(server, gate))
                #expect(server.submissions == 1)
                await gate.accept(Portal.key, .ann, Acceptance(path: nil, at: LoginRig.now))
            }
            #expect(gate.all.isEmpty)
        }
    }

    @Test("a wrong password is submitted once and latched", arguments: applications)
    func wrong(_ application: RealApplication) async throws {
        for proof in [false, true] {
            let (gate, server) = (LocalGate(), InstalledApplication(application, isRight: false))
            for _ in 0..<4 {
                let login = try login(application, proof: proof)
                await #expect(throws: LoginFailure.self) { _ = try await login.logIn(conversation(server, gate)) }
            }
            #expect(server.submissions == 1, "\(application.name)")
            #expect(!gate.all.isEmpty, "\(application.name)")
        }
    }

    @Test("a password that was changed at the server is submitted twice at the most", arguments: applications)
    func changed(_ application: RealApplication) async throws {
        let (gate, server) = (LocalGate(), InstalledApplication(application, isRight: false))
        await gate.accept(Portal.key, .ann, Acceptance(path: nil, at: LoginRig.now))
        for _ in 0..<4 {
            let login = try login(application, proof: false)
            await #expect(throws: LoginFailure.self) { _ = try await login.logIn(conversation(server, gate)) }
        }
        #expect(server.submissions <= 2, "\(application.name)")
    }
}
