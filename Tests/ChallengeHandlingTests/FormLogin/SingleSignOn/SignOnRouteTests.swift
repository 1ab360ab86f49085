// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Testing

@Suite("Route of a single sign-on")
struct SignOnRouteTests {
    private func objection(
        to next: String, from page: String = "https://app.example.com/",
        through: [String] = ["https://idp.example.com"],
        upstream: String = "https://app.example.com"
    ) throws -> String? {
        let route = SignOnRoute(
            from: try #require(WebURL(upstream)).origin, through: try through.map { try #require(WebURL($0)).origin })
        return route.objection(to: try #require(WebURL(next)), from: try #require(WebURL(page)))
    }

    @Test(
        "the upstream and the origins of `through` may be visited",
        arguments: ["https://app.example.com/a", "https://idp.example.com/"])
    func allowed(_ next: String) throws { #expect(try objection(to: next) == nil) }

    @Test(
        "any other origin is refused by name, with the remedy",
        arguments: [
            "https://evil.example.com", "http://idp.example.com", "https://idp.example.com:8443", "https://example.com",
            "https://idp.example.com.evil.com", "https://a.idp.example.com",
        ])
    func unlisted(_ origin: String) throws {
        let objection = try #require(try objection(to: "\(origin)/login"))
        #expect(objection.contains("If you trust that server, add \(origin) to `through`."), "\(objection)")
    }

    @Test("a page over TLS leads to no server without TLS, but one on this machine")
    func downgrade() throws {
        let plain = "http://app.example.com"
        let idp = "https://idp.example.com/"
        #expect(try objection(to: "\(plain)/", from: idp, upstream: plain)?.contains("not encrypted") == true)
        #expect(try objection(to: idp, from: "\(plain)/", upstream: plain) == nil)
        #expect(try objection(to: "http://127.0.0.1:8081/", from: idp, upstream: "http://127.0.0.1:8081") == nil)
        #expect(try objection(to: "http://b/", from: "http://a/", through: ["http://b"], upstream: "http://a") == nil)
    }

    @Test("a form is filled in only if its page and its action are of a provider")
    func forms() throws {
        let (app, idp, other) = ("https://app.example.com/", "https://idp.example.com/", "https://evil.example.com/")
        let route = SignOnRoute(from: SignOn.app, through: [SignOn.provider, SignOn.app])
        for (page, action, isAllowed) in [
            (idp, idp, true), (app, idp, false), (idp, app, false), (app, app, false), (idp, other, false),
            (other, idp, false),
        ] {
            let objection = route.objection(
                toFillingIn: try #require(WebURL(action)), on: try #require(WebURL(page)))
            #expect((objection == nil) == isAllowed, "\(page) to \(action)")
        }
    }
}

@Suite("Detection of single sign-on")
struct SignOnDetectorTests {
    private func examine(
        _ status: Int, to location: String? = nil, _ body: String? = nil, post: Bool = false,
        through: [Origin] = [SignOn.provider]
    ) throws -> Challenge {
        let detector = SignOnDetector(
            SignOnRoute(from: SignOn.app, through: through), SignOn.rules(), kind: "gateway form")
        var response = ExaminedResponse(
            status: status, fields: [.contentType: "text/html"], body: body.map { Array($0.utf8) },
            method: post ? .post : .get, url: try #require(WebURL("https://app.example.com/home")))
        response.fields[.location] = location
        #expect(detector.filter.admits(status: status), "the filter admits \(status)")
        return detector.examine(response, hasSession: false)
    }

    @Test("a redirect to a provider is the challenge, for GET and for POST", arguments: [301, 302, 303, 307, 308])
    func redirect(_ status: Int) throws {
        for post in [false, true] {
            #expect(try examine(status, to: "https://idp.example.com/sso?x=1", post: post) == .challenged())
            #expect(try examine(status, to: "//idp.example.com/sso", post: post) == .challenged())
        }
    }

    @Test(
        "a redirect elsewhere is no challenge",
        arguments: [
            "https://other.example.com/?next=https://idp.example.com/", "https://idp.example.com.evil.com/", "/home",
            "http://idp.example.com/", "https://app.example.com/https://idp.example.com/",
        ])
    func elsewhere(_ location: String) throws { #expect(try examine(302, to: location) == .pass) }

    @Test("a 401 is the challenge as well")
    func unauthorized() throws { #expect(try examine(401) == .challenged()) }

    @Test("a form with a SAML request to a provider is the challenge, and no other form")
    func forms() throws {
        let form =
            "<form method=post action='https://idp.example.com/sso'><input type=hidden name=SAMLRequest value=1></form>"
        #expect(try examine(200) == .needsBody)
        #expect(try examine(200, form) == .challenged())
        #expect(try examine(200, form.replacing("idp.", with: "evil.")) == .pass)
        #expect(try examine(200, SignOn.form) == .pass, "a login form of the upstream itself")
    }

    @Test("the upstream itself is no provider, even if `through` names it")
    func upstream() throws {
        #expect(try examine(302, to: "https://app.example.com/sso", through: [SignOn.app]) == .pass)
        #expect(try examine(401, through: [SignOn.app]) == .pass)
    }
}
