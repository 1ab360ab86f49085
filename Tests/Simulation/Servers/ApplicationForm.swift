// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A login form that an application shows by itself, in one of many ways.
final class ApplicationForm: Protection {
    static let cookie = "SID"
    private static let folderCookie = "AREA"
    private static let folder = "/base/r"
    /// A server that no configuration names.
    static let elsewhere = "http://elsewhere.test"

    let account: Account
    let traits: FormTraits
    let isEverywhere = true
    private var sessions: Set<String> = []
    /// The tokens of forms that were shown, and the addresses that showed them, by cookie.
    private var forms: [String: (token: String, address: String)] = [:]
    /// An attempt whose verdict follows a redirect.
    private var refused: Attempt?
    private var last = 0
    private var simulation: Simulation { account.simulation }

    init(_ account: Account) {
        self.account = account
        traits = FormTraits(&account.simulation.chance, provesAt: account.simulation.setting.provesAt)
    }

    // MARK: The configuration

    var configuration: [String] {
        var lines: [String] = []
        var login: [String] = []
        switch traits.preset {
        case .form: lines.append("gateway: form")
        case .jSecurityCheck: lines.append("gateway: j-security-check")
        case .none:
            lines.append("gateway: none")
            let page = "{ body-contains: \(words) }"
            lines.append("detect: [\(traits.redirect == nil ? page : "\(page), { redirect-to: /base/login }")]")
            login.append("url: \(traits.isActionNamed ? "/base/login" : "form")")
            login.append("fields: hidden")
            login.append("parameters: { user: \"{username}\", pass: \"{password}\" }")
            if traits.extractsCookie { login.append("extract: { sid: \"cookie:\(Self.cookie)\" }") }
            if traits.hasNonce { login.append("headers: { X-Nonce: '{page:/data-nonce=\"([^\"]*)\"/}' }") }
        }
        if traits.isPageNamed { login.append("page: /base/") }
        if !login.isEmpty { lines.append("login: { \(login.joined(separator: ", ")) }") }
        if traits.hasSuccess { lines.append("success: [{ cookie: \(Self.cookie) }]") }
        if traits.hasCopy {
            let source = traits.isDecoded ? "decoded-cookie:XSRF-TOKEN" : "cookie:csrftoken"
            lines.append("inject: { X-Copy: { value: \"{\(source)}\", on: [POST, PUT] } }")
        }
        return lines
    }

    func fields(of value: String) -> [String: String] { ["username": "ann", "password": value] }

    // MARK: What the judge knows

    private var words: String { "login-of-\(account.name)" }
    /// True if an address that everybody trusts shows whether a session is good.
    var isProvable: Bool { simulation.setting.provesAt || !traits.isEntranceOpen }
    /// True if only a caller's address shows the form.
    var isFoundByCallers: Bool { traits.isEntranceOpen && !simulation.setting.provesAt }
    var needsBody: Bool { traits.redirect == nil }
    var isCarriedUnasked: Bool { isProvable }
    func isCarried(by request: ServerRequest) -> Bool { request.cookie(Self.cookie) != nil }
    func isDemand(_ status: Int, _ body: String) -> Bool { status == traits.redirect || body.contains(words) }

    func endSessions() {
        if sessions.isEmpty { return }
        account.ends += 1
        sessions = []
    }

    // MARK: Resources

    func examine(_ request: ServerRequest) -> Examination {
        checkCookies(of: request)
        let path = request.path
        if isProvable, request.isSide, !request.isLook, path.hasPrefix("/base/r/"), !simulation.weather.hasFaults {
            simulation.violated("rule 11: the login of \(account.name) asks for a caller's address \(path)")
        }
        if request.isSide, !request.isLook, request.target.contains("?"), !path.hasPrefix("/base/login") {
            simulation.violated("rule 2: the login of \(account.name) asks for \(request.target), with its query")
        }
        if request.isSide, !request.isLook, path.contains("//") || path.contains(";") {
            simulation.violated("rule 11: the login of \(account.name) asks for \(path), which has two readings")
        }
        if let id = request.cookie(Self.cookie), sessions.contains(id) {
            if let trouble = trouble(at: request) { return .demand(trouble) }
            checkCopy(in: request)
            return .pass(nil)
        }
        if traits.isEntranceOpen, path == "/base/" || path == "/" { return .pass(nil) }
        // A form that its address always shows does not prove a missing login.
        if isFoundByCallers, path.hasPrefix("/base/forbidden/") { account.disturbed() }
        return .demand(demand(of: request))
    }

    /// Returns the answer of a server in trouble to a check of a valid session.
    private func trouble(at request: ServerRequest) -> ServerAnswer? {
        guard simulation.weather.troublesLooks, simulation.isStormy, request.isSide, request.method == "GET",
            !simulation.logins.isRunning(account.name), simulation.chance.oneIn(2)
        else { return nil }
        return simulation.chance.pick([ServerAnswer(500, body: "broken"), ServerAnswer(503), ServerAnswer(429)])
    }

    /// Only callers lead to the login page, and a login must not ask for an address that has two readings.
    func isBeyondReach(_ order: Order) -> Bool {
        isFoundByCallers && (order.target.contains(";") || order.target.contains("//"))
    }

    private func demand(of request: ServerRequest) -> ServerAnswer {
        if let redirect = traits.redirect {
            return ServerAnswer(redirect, [("Location", "/base/login?next=\(request.path)")])
        }
        var answer = page(for: request, status: traits.pageStatus, address: request.path)
        guard !request.isSide, request.value("accept-encoding")?.contains("gzip") == true else { return answer }
        answer.body = GzipText.encode(answer.body)
        answer.fields += [("Content-Encoding", "gzip"), ("X-Demand", "a login")]
        return answer
    }

    func refusal() -> ServerAnswer {
        // It may be an address that does not lead to a login page, if only callers lead to one.
        if isFoundByCallers { account.disturbed() }
        return ServerAnswer(
            traits.redirect == nil ? traits.pageStatus : 200, [("Content-Type", "text/html")],
            body: LoginPageText(traits, words: words).html)
    }

    /// Returns the page of a guest, which is not a login page although it has a form.
    func guestPage(_ number: Int, for request: ServerRequest) -> ServerAnswer? {
        guard traits.hasGuests else { return nil }
        if isFoundByCallers { account.disturbed() }
        // Some guests of a portal write a form of their own.
        if traits.isPortal, number % 2 > 0 { return page(for: request, status: 200, address: request.path) }
        return ServerAnswer(200, [("Content-Type", "text/html")], body: guestText(number))
    }

    private func guestText(_ number: Int) -> String {
        var page = LoginPageText(traits, words: traits.preset == .none ? words : "guest")
        page.message = "A guest's page \(number)"
        // Before the first login any page may be the login page (`check` warns about it).
        guard account.hasLoggedIn else { return "<html>guest \(number)</html>" }
        switch number % 3 {
        case 0: page.action = traits.preset == .jSecurityCheck ? "/evil/j_security_check" : "/base/guestbook"
        case 1 where traits.preset == .form && number % 2 == 0: page.box = "planted"
        case 1: page.hidden = [("planted", "1")]
        default: page.action = "\(Self.elsewhere)/guestbook"
        }
        return page.html
    }

    /// True if guests' pages are open to all.
    var isGuestbookOpen: Bool { traits.hasGuests && isFoundByCallers }

    private func checkCookies(of request: ServerRequest) {
        let path = request.path
        if request.cookie(Self.folderCookie) != nil, path != Self.folder, !path.hasPrefix(Self.folder + "/") {
            simulation.violated("rule 9: a cookie for \(Self.folder) goes to \(path)")
        }
    }

    /// Checks the copy of a cookie in a request on a session.
    private func checkCopy(in request: ServerRequest) {
        guard traits.hasCopy, !request.isSide else { return }
        let copy = request.value("x-copy")
        if request.value("x-planted") != nil { simulation.violated("rule 9: a cookie became a field of its own") }
        guard request.method == "POST" || request.method == "PUT" else {
            if copy != nil { simulation.violated("rule 9: \(request.method) has a field of other methods") }
            return
        }
        guard let cookie = request.cookie(traits.isDecoded ? "XSRF-TOKEN" : "csrftoken") else {
            if copy != nil { simulation.violated("rule 9: a copy of no cookie: \(copy ?? "")") }
            return
        }
        let plain = traits.isDecoded ? ServerRequest.percentDecoded(cookie) : cookie
        if plain.utf8.contains(where: { $0 < 0x20 }) { return }
        if copy != plain { simulation.violated("rule 9: the copy of the cookie \(cookie) is \(copy ?? "none")") }
    }

    // MARK: Addresses of its own

    func answer(to request: ServerRequest) -> ServerAnswer? {
        let path = request.path
        if path == LoginPageText.action(of: traits), request.method == "POST" { return logIn(request) }
        if path == "/base/login" {
            checkCookies(of: request)
            var answer = page(for: request, status: 200, address: request.target.components(after: "next=") ?? "/base/")
            guard request.isSide, request.target.hasSuffix("?error=1") else { return answer }
            defer { refused = nil }
            // A failure must not come with the mark of a success.
            if traits.hasSuccess { answer.fields.removeAll { $0.value.hasPrefix("\(Self.cookie)=") } }
            return answer.judging(refused)
        }
        // A page for everybody.
        if path == "/welcome", traits.isPageNamed {
            return ServerAnswer(200, [("Content-Type", "text/plain")], body: "hello")
        }
        return nil
    }

    private func page(for request: ServerRequest, status: Int, address: String) -> ServerAnswer {
        var page = LoginPageText(traits, words: words)
        var answer = ServerAnswer(status, [("Content-Type", "text/html; charset=utf-8")])
        if traits.hasNonce { page.nonce = "n\(last)" }
        if request.isSide {
            if traits.hasHiddenToken || traits.keepsCookie || traits.success == .saved {
                let id = request.cookie(Self.cookie) ?? newID("form")
                if forms[id] == nil { forms[id] = ("t\(last)", address) }
                if request.cookie(Self.cookie) == nil {
                    answer.fields.append(("Set-Cookie", "\(Self.cookie)=\(id); Path=/; HttpOnly"))
                }
                if traits.hasHiddenToken { page.hidden.append(("csrf", forms[id]?.token ?? "")) }
            }
            if traits.hasLanguage { answer.fields.append(("Set-Cookie", "lang=en; Path=/base")) }
            addCopied(to: &answer)
            if traits.lapse == .sendsElsewhere, account.lapses() { page.action = Self.elsewhere + page.action }
            if traits.lapse == .breaksValue, account.lapses() { page.nonce = "n\(last)\r\nX-Planted: 1" }
        }
        if traits.hasBase, address != "/base/" { page.base = "\(Self.elsewhere)/" }
        answer.body = Array(page.html.utf8)
        return answer
    }

    private func logIn(_ request: ServerRequest) -> ServerAnswer {
        guard request.isSide else {
            simulation.violated("rule 11: the form was not sent by a login")
            return ServerAnswer(405)
        }
        let form = request.form
        if form["planted"] != nil { simulation.violated("rule 11: an input of a guest's page is sent to the login") }
        if let nonce = request.value("x-nonce"), nonce.contains(where: { $0 != "n" && !$0.isNumber }) {
            simulation.violated("rule 9: a value of a page became \(nonce)")
        }
        let id = request.cookie(Self.cookie)
        if traits.hasHiddenToken, id.flatMap({ forms[$0] })?.token != form["csrf"] {
            simulation.violated("the form of \(account.name) came with the token \(form["csrf"] ?? "none") of another")
        }
        refused?.isAbandoned()
        refused = nil
        let attempt = account.judge(form[LoginPageText.names(of: traits).password] ?? "", sentAt: request.sentAt)
        guard attempt.isRight else {
            guard traits.failure == .redirect else { return refuse(request).judging(attempt) }
            refused = attempt
            return refuse(request)
        }
        if isProvable { account.checkLogins() }
        if let lapse = traits.lapse, [.forbids, .saysNothing, .forgetsCookie].contains(lapse),
            lapse != .forbids || simulation.disk.isAccepted(account), account.lapses()
        {
            attempt.isMoot()
            switch lapse {
            case .forbids: return ServerAnswer(403, [("Content-Type", "text/plain")], body: "not now")
            case .saysNothing: return ServerAnswer(200, [("Content-Type", "text/html")], body: "<html>moment</html>")
            default: return ServerAnswer(302, [("Location", "/welcome")])
            }
        }
        return accept(request, id).judging(attempt)
    }

    private func refuse(_ request: ServerRequest) -> ServerAnswer {
        var answer: ServerAnswer
        switch traits.failure {
        case .page: answer = page(for: request, status: 200, address: "/base/")
        case .redirect: answer = ServerAnswer(302, [("Location", "/base/login?error=1")])
        case .unauthorized: answer = ServerAnswer(401, [("Content-Type", "text/plain")], body: "wrong")
        case .forbidden: answer = ServerAnswer(403, [("Content-Type", "text/plain")], body: "wrong")
        }
        if traits.setsCookieOnFailure {
            answer.fields.append(("Set-Cookie", "\(Self.cookie)=\(newID("visitor")); Path=/; HttpOnly"))
        }
        return answer
    }

    private func accept(_ request: ServerRequest, _ id: String?) -> ServerAnswer {
        let session = traits.keepsCookie ? id ?? newID("session") : newID("session")
        sessions.insert(session)
        var answer: ServerAnswer
        switch traits.success {
        case .welcome: answer = ServerAnswer(302, [("Location", "/welcome")])
        case .saved: answer = ServerAnswer(302, [("Location", id.flatMap { forms[$0]?.address } ?? "/base/")])
        case .plain: answer = ServerAnswer(200, [("Content-Type", "text/html")], body: "<html>hello</html>")
        case .foreign: answer = ServerAnswer(302, [("Location", "\(Self.elsewhere)/home")])
        }
        if !traits.keepsCookie || id == nil {
            answer.fields.append(("Set-Cookie", "\(Self.cookie)=\(session); Path=/; HttpOnly"))
        }
        if traits.hasFolderCookie {
            answer.fields.append(("Set-Cookie", "\(Self.folderCookie)=\(newID("area")); Path=\(Self.folder)"))
        }
        if !traits.keepsCookie { addCopied(to: &answer) }
        return answer
    }

    /// Adds the cookie that pages copy, which callers get too.
    private func addCopied(to answer: inout ServerAnswer) {
        guard traits.hasCopy else { return }
        answer.fields.append(
            ("Set-Cookie", traits.isDecoded ? "XSRF-TOKEN=a%3D\(last); Path=/" : "csrftoken=a\(last); Path=/"))
    }

    private func newID(_ kind: String) -> String {
        last += 1
        return "\(Simulation.secretMark)\(kind)\(account.name)n\(last)"
    }
}
