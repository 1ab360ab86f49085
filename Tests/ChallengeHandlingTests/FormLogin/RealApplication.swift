// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Synchronization
import Testing

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
