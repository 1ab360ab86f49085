// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling

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
    package var form: LoginForm? { LoginForm(on: last.body ?? []) }

    /// The visit in one line, without queries, which can contain secrets.
    package var summary: String {
        let hops = responses.dropFirst().map { " -> \($0.url.path)" }.joined()
        let elsewhere = otherOrigin.map { " -> \($0)" } ?? ""
        return "GET \(address.path)\(hops)\(elsewhere): \(last.status)"
    }
}
