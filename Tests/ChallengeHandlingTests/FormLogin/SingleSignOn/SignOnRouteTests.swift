// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
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

    @Test("the upstream itself is not a provider, even if `through` names it")
    func upstream() throws {
        #expect(try examine(302, to: "https://app.example.com/sso", through: [SignOn.app]) == .pass)
        #expect(try examine(401, through: [SignOn.app]) == .pass)
    }
}

@Suite("Forms that submit themselves")
struct SelfSubmittingFormTests {
    private func found(on page: String) -> SelfSubmittingForm? { SelfSubmittingForm(on: Array(page.utf8)) }

    @Test(
        "a form with a message of a sign-on protocol is submitted with its hidden inputs",
        arguments: [
            "SAMLResponse=a RelayState=b", "SAMLRequest=a", "wresult=a wctx=b", "code=a state=b", "id_token=a state=b",
            "error=a state=b",
        ])
    func messages(_ inputs: String) throws {
        let pairs = inputs.split(separator: " ").map { $0.split(separator: "=").map(String.init) }
        let hidden = pairs.map { "<input type=hidden name=\($0[0]) value=\($0[1])>" }.joined()
        let form = try #require(
            found(on: "<form method=post action=/acs>\(hidden)<noscript><input type=submit></noscript></form>"))
        #expect(form.isPost)
        #expect(form.inputs.map { [$0.name, $0.value.revealText()] } == pairs)
        #expect(form.action(at: try #require(WebURL("https://a/b")))?.description == "https://a/acs")
    }

    @Test(
        "other forms are not submitted",
        arguments: [
            "<form method=post><input type=hidden name=csrf value=1></form>",
            "<form method=post><input type=hidden name=code value=1></form>",
            "<form><input type=hidden name=SAMLResponse value=1></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input name=user></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input type=password name=p></form>",
            "<form method=post><input type=hidden name=SAMLResponse><input type=checkbox name=agree></form>",
            "<form method=post><input type=hidden name=SAMLResponse disabled></form>",
            "<script>'<form method=post><input type=hidden name=SAMLResponse></form>'</script>",
            "<form><input type=hidden name=a><input type=submit name=allow value=yes></form><script>x.submit()</script>",
            "<form><input type=hidden name=a></form><form></form><script>document.forms[0].submit()</script>", "",
        ])
    func others(_ page: String) { #expect(found(on: page) == nil) }

    @Test("of a form with a SAML request, only the inputs of the message are part of the request")
    func requests() throws {
        let names = ["SAMLRequest", "action", "RelayState", "SigAlg", "Signature", "KeyInfo", "csrf", "samlrequest"]
        let inputs = names.map { "<input type=hidden name=\($0) value=1>" }.joined()
        let form = try #require(found(on: "<form method=post action=/sso>\(inputs)</form>"))
        let request = try #require(form.request())
        #expect(request.form.inputs.map(\.name) == ["SAMLRequest", "RelayState", "SigAlg", "Signature", "KeyInfo"])
        #expect(request.omitted == ["action", "csrf", "samlrequest"])
        let response = "<form method=post action=/acs><input type=hidden name=SAMLResponse value=1></form>"
        #expect(try #require(found(on: response)).request() == nil)
    }

    @Test("the only form of a page, whose script submits it, is submitted")
    func scripted() throws {
        let form = try #require(
            found(
                on:
                    "<body onload='document.forms[0].submit()'><form action='https://x/y'><input type=hidden name=a></form>"
            ))
        #expect(!form.isPost && form.request() == nil)
    }

    @Test("a response of 100 KB is read whole, one beyond the limit not at all")
    func large() {
        func page(_ count: Int) -> String {
            "<form method=post><input type=hidden name=SAMLResponse value=\(String(repeating: "A", count: count))></form>"
        }
        #expect(found(on: page(100_000))?.inputs.first?.value.count == 100_000)
        #expect(found(on: page(HTMLPage.limit)) == nil)
    }

    @Test(
        "a form whose action is not an http or https address is not submitted",
        arguments: ["javascript:alert(1)", "mailto:a@b", "data:,"])
    func actions(_ action: String) throws {
        let form = try #require(
            found(on: "<form method=post action='\(action)'><input type=hidden name=SAMLResponse></form>"))
        #expect(form.action(at: try #require(WebURL("https://a/b"))) == nil)
    }
}
