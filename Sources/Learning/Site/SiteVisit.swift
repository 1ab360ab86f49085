// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import FieldBytes
internal import HTTPTypes
internal import Secrets

/// A GET and the redirects after it, within one origin.
package struct SiteVisit: Sendable {
    /// The requested address.
    package let address: WebURL
    /// The responses in order: redirects, and the page at their end. At least one.
    package let responses: [ExaminedResponse]
    /// The other origin that the last redirect leads to; `nil` if it stays within the origin.
    package let otherOrigin: Origin?

    /// Creates a visit.
    package init(address: WebURL, responses: [ExaminedResponse], otherOrigin: Origin? = nil) {
        self.address = address
        self.responses = responses
        self.otherOrigin = otherOrigin
    }

    /// The first response: the answer to the request itself.
    package var first: ExaminedResponse { responses.first ?? ExaminedResponse(status: 0, url: address) }
    /// The last response, after all redirects.
    package var last: ExaminedResponse { responses.last ?? first }
    /// The login form of the last page; `nil` without one.
    package var form: LoginForm? { LoginForm(on: last) }
    /// The form of the last page that asks for the user's name alone; `nil` without one.
    package var nameForm: NameForm? { form == nil ? NameForm(on: last) : nil }

    /// The visit in one line, without queries, which can contain secrets.
    package var summary: String {
        let hops = responses.dropFirst().map { " -> \($0.url.path)" }.joined()
        let elsewhere = otherOrigin.map { " -> \($0)" } ?? ""
        return "GET \(address.path)\(hops)\(elsewhere): \(last.status)"
    }
}

extension ExaminedResponse {
    /// True if the body is a page.
    var isPage: Bool { ["text/html", "application/xhtml+xml"].contains(MediaType(fields[.contentType] ?? "").essence) }
}

/// Client that visits pages of one site, anonymously or with a session. It sends GET only.
package struct SiteVisitor: Sendable {
    /// The largest number of redirects that are followed.
    static let redirectLimit = 6

    private let requests: any SideRequests
    private let now: @Sendable () -> Int64
    /// The `User-Agent` of its requests; `nil` for that of the login.
    private let userAgent: String?

    /// Creates a client over `requests`. `now` returns milliseconds since 1970.
    package init(requests: any SideRequests, userAgent: String? = nil, now: @escaping @Sendable () -> Int64) {
        self.userAgent = userAgent
        self.requests = requests
        self.now = now
    }

    /// Visits an address, and follows redirects within its origin.
    package func visit(
        _ address: WebURL, with session: Session? = nil
    ) async throws(SideRequestError) -> SiteVisit {
        var jar = session?.cookies?.snapshot ?? CookieJar()
        var responses: [ExaminedResponse] = []
        var next = address
        for _ in 0...Self.redirectLimit {
            let response = try await get(next, session, &jar)
            responses.append(response)
            let refresh = PageRefresh(of: response).flatMap { refresh in
                SiteVisit(address: address, responses: responses).form == nil
                    && !responses.contains { $0.url == refresh.target } ? refresh.target : nil
            }
            guard let target = response.redirectTarget ?? refresh else { break }
            guard target.origin == address.origin else {
                return SiteVisit(address: address, responses: responses, otherOrigin: target.origin)
            }
            next = target
        }
        return SiteVisit(address: address, responses: responses)
    }

    private func get(
        _ url: WebURL, _ session: Session?, _ jar: inout CookieJar
    ) async throws(SideRequestError) -> ExaminedResponse {
        var request = SideRequest(
            method: .get, url: url, fields: [.accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"])
        request.allowsPartialBody = true
        if let userAgent { request.fields[.userAgent] = userAgent }
        for field in session?.fields ?? [] { request.fields[values: field.name] = [field.value.revealText()] }
        if let cookies = jar.header(for: url, now: now()) { request.fields.set(.cookie, to: cookies.revealBytes()) }
        let answer = try await requests.send(request)
        for line in answer.fields.bytes(of: .setCookie) { _ = jar.store(line, from: url, now: now()) }
        // Whole: the form may be far down a page.
        return ExaminedResponse(status: answer.status, fields: answer.fields, body: answer.body, method: .get, url: url)
    }
}
