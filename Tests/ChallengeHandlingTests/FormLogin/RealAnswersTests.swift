// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Synchronization
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

/// The login of a real application, as measured on a fresh installation with one user.
struct RealApplication: Sendable, CustomTestStringConvertible {
    /// Answer of the protected address without a session.
    enum Anonymous: Sendable {
        /// The login page at the address itself, with this status.
        case inPlace(Int)
        /// A page without a form, with this status.
        case page(Int)
        /// A redirect to the login page.
        case redirect
    }

    /// Answer to the submitted form.
    struct Answer: Sendable {
        var status: Int
        var location: String?
        /// True if the session's cookie gets another value.
        var setsCookie = false
        /// True if the answer has the login form.
        var hasForm = false
    }

    var name: String
    var anonymous: Anonymous
    /// The protected address, and the address of the login page.
    var home = "/home", page = "/login"
    var action = "/login"
    /// Further inputs of the form.
    var more = ""
    var user: String? = "username"
    var password = "password"
    /// True if the session's cookie is not set before the login.
    var isNewName = false
    var right: Answer
    var wrong: Answer
    var isServletContainers = false

    var testDescription: String { name }
}

/// One installation, with a log of what it got.
final class InstalledApplication: SideRequests {
    private let application: RealApplication
    private let isRight: Bool
    private let log = Mutex<[String]>([])

    init(_ application: RealApplication, isRight: Bool) {
        self.application = application
        self.isRight = isRight
    }

    var submissions: Int { log.withLock { $0.count { $0.hasPrefix("POST") } } }

    private var form: String {
        let user = application.user.map { "<input name='\($0)'>" } ?? ""
        return "<form method=post action='\(application.action)'><input type=hidden name=csrf value=t>\(user)"
            + "<input type=password name='\(application.password)'>\(application.more)</form>"
    }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        log.withLock { $0.append("\(request.method) \(request.url.path)") }
        let cookies = request.fields[.cookie] ?? ""
        if request.method == .post { return submitted(cookies) }
        let isOpen = cookies.contains("sid=in")
        switch request.url.path {
        case application.page where isOpen && request.url.path != application.home:
            return redirect(to: application.home)
        case application.page where request.url.path != application.home || !isOpen && isInPlace:
            return page(pageStatus, form, cookies)
        case application.home where !isOpen: return anonymous(cookies)
        default: return page(200, isOpen ? "<p>Welcome</p>" : "<p>Public</p>", cookies)
        }
    }

    private var isInPlace: Bool { if case .inPlace = application.anonymous { true } else { false } }
    private var pageStatus: Int { if case .inPlace(let status) = application.anonymous { status } else { 200 } }

    private func anonymous(_ cookies: String) -> SideResponse {
        switch application.anonymous {
        case .inPlace(let status): return page(status, form, cookies)
        case .page(let status): return page(status, "<p>You are not logged in</p>", cookies)
        case .redirect: return redirect(to: application.page)
        }
    }

    private func redirect(to path: String) -> SideResponse {
        var fields: HTTPFields = [:]
        fields[.location] = path
        return SideResponse(status: 302, fields: fields)
    }

    private func submitted(_ cookies: String) -> SideResponse {
        let answer = isRight ? application.right : application.wrong
        var response = page(answer.status, answer.hasForm ? "Wrong. \(form)" : "<p>Hello, no error</p>", "sid")
        response.fields[.location] = answer.location
        if answer.setsCookie { response.fields[values: .setCookie] = ["sid=\(isRight ? "in" : "out"); Path=/"] }
        return response
    }

    private func page(_ status: Int, _ body: String, _ cookies: String) -> SideResponse {
        var fields: HTTPFields = [.contentType: "text/html"]
        if !application.isNewName, !cookies.contains("sid") { fields[values: .setCookie] = ["sid=pre; Path=/"] }
        return SideResponse(status: status, fields: fields, body: Array(body.utf8))
    }
}
