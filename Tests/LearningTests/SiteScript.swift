// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Synchronization
import Testing

@testable import Learning

/// A site of fixed answers by request target; everything else is 404.
final class SiteScript: SideRequests {
    private let answers: [String: SideResponse]
    private let seen = Mutex<[String]>([])

    init(_ answers: [String: SideResponse]) { self.answers = answers }

    /// The requests so far: method and target.
    var requests: [String] { seen.withLock { $0 } }

    func send(_ request: SideRequest) async throws(SideRequestError) -> SideResponse {
        seen.withLock { $0.append("\(request.method.rawValue) \(request.url.target)") }
        return answers[request.url.target] ?? SideResponse(status: 404)
    }

    /// Looks at the site as `learn` does for the address `path`.
    func findings(_ path: String) async throws -> SiteFindings {
        let base = try #require(WebURL("https://www.example.com/"))
        let asked = try #require(base.resolving(path))
        return try await SiteProbe(SiteVisitor(requests: self, now: { 0 })).run(asked, base: base)
    }
}

extension SideResponse {
    /// A page.
    static func page(_ html: String, status: Int = 200) -> SideResponse {
        SideResponse(status: status, fields: [.contentType: "text/html; charset=utf-8"], body: Array(html.utf8))
    }

    /// A page with an ordinary login form.
    static func loginForm(status: Int = 200) -> SideResponse {
        page(
            "<form method=post action=/login><input type=hidden name=csrf value=1><input name=user>"
                + "<input type=password name=pass></form>", status: status)
    }

    /// A redirect.
    static func redirect(to target: String) -> SideResponse { SideResponse(status: 302, fields: [.location: target]) }

    /// A refusal with a `WWW-Authenticate` field.
    static func refusal(_ challenge: String, body: String = "") -> SideResponse {
        var fields: HTTPFields = [.contentType: "application/json"]
        if !challenge.isEmpty { fields[.wwwAuthenticate] = challenge }
        return SideResponse(status: 401, fields: fields, body: Array(body.utf8))
    }
}
