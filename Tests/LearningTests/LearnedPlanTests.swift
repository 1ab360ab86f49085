// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Synchronization
import Testing

@testable import Learning

@Suite("Plans that `learn` makes of a site's anonymous answers")
struct LearnedPlanTests {
    private func lines(
        _ site: SiteScript, _ path: String, known: Set<String> = []
    ) async throws -> [String] {
        let findings = try await site.findings(path)
        return try LearnedPlan(findings, kind: LearnedKind(findings), known: known).lines.map(\.text)
    }

    @Test("a form on the root page needs one line")
    func formAtRoot() async throws {
        let site = SiteScript(["/": .loginForm(), "/start": .loginForm(status: 403)])
        #expect(try await lines(site, "/") == ["gateway: form"])
        #expect(try await lines(site, "/start") == ["gateway: form"])
    }

    @Test("a redirect to the form is detected as such, so that open pages with a form pass")
    func redirect() async throws {
        let site = SiteScript([
            "/": .page("hello"), "/admin/": .redirect(to: "/login?next=/admin/"), "/login?next=/admin/": .loginForm(),
        ])
        #expect(
            try await lines(site, "/admin/") == [
                "gateway: form", "detect: { status: 302, redirect-to: /login }", "prove-at: /admin/",
            ])
        let whole = SiteScript([
            "/": .redirect(to: "/login"), "/admin/": .redirect(to: "/login"), "/login": .loginForm(),
        ])
        #expect(
            try await lines(whole, "/admin/") == ["gateway: form", "detect: { status: 302, redirect-to: /login }"])
    }

    @Test("an API that refuses in JSON is learned with the login page that a link or a usual address leads to")
    func refusal() async throws {
        let linked = SiteScript([
            "/": .page("<a href='/about'>a</a><a href='/in?do=login'>in</a>"), "/in?do=login": .loginForm(),
            "/api": SideResponse(status: 403, fields: [.contentType: "application/json"]),
        ])
        let expected = [
            "gateway: form", "detect: { status: 403, content-type: application/json }",
            "login: { page: \"/in?do=login\" }", "prove-at: /api",
        ]
        #expect(try await lines(linked, "/api") == expected)
        #expect(linked.requests.allSatisfy { $0.hasPrefix("GET ") })
        let usual = SiteScript(["/": .page("hello"), "/login": .loginForm(), "/api": .refusal("")])
        #expect(try await lines(usual, "/api").contains("login: { page: /login }"))
    }

    @Test("a page that says so in its title is detected by the title")
    func title() async throws {
        let site = SiteScript([
            "/": .redirect(to: "/Main"),
            "/Main": .page("<title>Login required - Wiki</title><a href=/Special:UserLogin>"),
            "/Special:UserLogin": .loginForm(),
        ])
        #expect(
            try await lines(site, "/Main") == [
                "gateway: form", "detect: { body-contains: \"<title>Login required - Wiki\" }",
                "login: { page: /Special:UserLogin }", "prove-at: /Main",
            ])
    }

    @Test("a scheme of HTTP is the strongest that the credential serves")
    func schemes() async throws {
        let basic = SiteScript(["/": .refusal("Basic realm=\"a\"")])
        #expect(try await lines(basic, "/") == ["scheme: basic"])
        let both = SiteScript([
            "/": .page("hello"), "/in": .refusal("Digest realm=\"a\", nonce=\"b\", Basic realm=\"a\""),
        ])
        #expect(try await lines(both, "/in") == ["scheme: digest", "prove-at: /in"])
        let tickets = SiteScript(["/": .refusal("Negotiate, Basic realm=\"a\"")])
        #expect(try await lines(tickets, "/") == ["scheme: basic"])
        #expect(try await lines(tickets, "/", known: ["keytab", "principal"]) == ["scheme: negotiate"])
    }

    @Test("bearer tokens are learned from the resource's metadata")
    func bearer() async throws {
        let metadata =
            "{\"resource\": \"https://www.example.com/\", \"authorization_servers\": [\"https://id.example.com\"]}"
        let site = SiteScript([
            "/": .refusal("Bearer resource_metadata=\"https://www.example.com/.well-known/oauth-protected-resource\""),
            "/.well-known/oauth-protected-resource": SideResponse(status: 200, body: Array(metadata.utf8)),
        ])
        #expect(
            try await lines(site, "/") == [
                "scheme: bearer", "token: { grant: client-credentials, issuers: [https://id.example.com] }",
            ])
        let registry = SiteScript(["/": .refusal("Bearer realm=\"https://auth.example.com/token\",service=\"reg\"")])
        #expect(
            try await lines(registry, "/").last
                == "token: { grant: registry, url: https://auth.example.com/token, audience: reg }")
    }

    @Test(
        "a site that cannot be configured from its answers alone is reported with the reason",
        arguments: [
            (SideResponse.refusal("", body: "{\"error\": \"token\"}"), "/: 401: the answer does not say how to log in"),
            (.refusal("Bearer"), "names no authorization server"),
            (.refusal("", body: "{\"challenges\": {\"Pin\": {}}}"), "not where answers go"),
            (.refusal("MFP-Challenge"), "mobilefirst"),
            (.redirect(to: "https://sso.example.org/in"), "the login is at https://sso.example.org"),
            (.refusal("Foo a b"), "Not understood in its WWW-Authenticate: \"a\" at byte 4"),
            (
                SideResponse(status: 407, fields: [.proxyAuthenticate: "Basic realm=\"p\" charset=UTF-8"]),
                "a proxy on the way asks for a login of its own"
            ),
            (.page("hello"), "open to everybody"), (SideResponse(status: 404), "has no page there"),
        ])
    func defeats(_ answer: SideResponse, _ words: String) async throws {
        let findings = try await SiteScript(["/": answer]).findings("/")
        let error = #expect(throws: LearnDefeat.self) {
            try LearnedPlan(findings, kind: LearnedKind(findings), known: [])
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains(words))
    }

    @Test("a login at another server is learned only if that server is named")
    func provider() async throws {
        let site = SiteScript(["/": .page("hello"), "/app": .redirect(to: "https://id.example.org/in?x=1")])
        let findings = try await site.findings("/app")
        let origin = try #require(WebURL("https://id.example.org")).origin
        let plan = try LearnedPlan(findings, kind: LearnedKind(findings), known: [], provider: origin)
        #expect(
            plan.lines.map(\.text) == ["gateway: form", "login: { through: https://id.example.org }", "prove-at: /app"])
        #expect(throws: LearnDefeat.self) {
            try LearnedPlan(
                findings, kind: LearnedKind(findings), known: [],
                provider: Origin(scheme: .https, host: "other.example"))
        }
    }

    @Test("a probe follows no redirect to another origin and at most six within one")
    func redirects() async throws {
        let away = SiteScript(["/": .redirect(to: "https://elsewhere.example/login")])
        #expect(try await away.findings("/").asked.otherOrigin?.host == "elsewhere.example")
        #expect(away.requests == ["GET /"])
        let loop = SiteScript(["/": .redirect(to: "/")])
        #expect(try await loop.findings("/").asked.responses.count == 7)
    }
}

@Suite("Configuration blocks")
struct ConfigurationBlockTests {
    @Test(
        "a value of a server is quoted in a configuration if YAML or the program reads it otherwise",
        arguments: [
            ("/admin/", "/admin/"), ("/doku.php?id=start", "\"/doku.php?id=start\""), ("a: b", "\"a: b\""),
            ("a # b", "\"a # b\""), ("\"", "\"\\\"\""), ("${HOME}", "\"$${HOME}\""), ("$${X}", "\"$$${X}\""),
        ])
    func scalars(_ text: String, _ written: String) {
        #expect(ConfigurationLine.scalar(text) == written)
    }

    @Test("a block has a comment for each line that is not obvious, and no line breaks of a server")
    func lines() throws {
        let url = try #require(WebURL("https://wiki.example.com/"))
        let block = ConfigurationBlock(
            name: "wiki", url: url, challenge: [ConfigurationLine("gateway: form", "a\nb")],
            fields: ["username", "password"])
        #expect(
            block.lines() == [
                "listeners:",
                "  - address: 127.0.0.1:8080         # address that programs on this machine use",
                "    upstream: wiki", "",
                "upstreams:", "  wiki:",
                "    url: https://wiki.example.com/  # server that was learned", "",
                "challenges:", "  - name: wiki",
                "    upstream: wiki                  # every address of the server",
                "    gateway: form                   # a b",
                "    credential: wiki                # fields: username, password",
            ])
        #expect(block.lines(listener: nil).first == "upstreams:")
    }
}

/// Site with fixed answers by request target, and 404 for all others.
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

    /// Examines the site as `learn` does for the address `path`.
    func findings(_ path: String) async throws -> SiteFindings {
        let base = try #require(WebURL("https://www.example.com/"))
        let asked = try #require(base.resolving(path))
        return try await SiteProbe(SiteVisitor(requests: self, now: { 0 })).run(asked, base: base)
    }
}

extension SideResponse {
    /// Returns a page with this status.
    static func page(_ html: String, status: Int = 200) -> SideResponse {
        SideResponse(status: status, fields: [.contentType: "text/html; charset=utf-8"], body: Array(html.utf8))
    }

    /// Returns a page with an ordinary login form.
    static func loginForm(status: Int = 200) -> SideResponse {
        page(
            "<form method=post action=/login><input type=hidden name=csrf value=1><input name=user>"
                + "<input type=password name=pass></form>", status: status)
    }

    static func redirect(to target: String) -> SideResponse { SideResponse(status: 302, fields: [.location: target]) }

    /// Returns a 401 with a `WWW-Authenticate` field.
    static func refusal(_ challenge: String, body: String = "") -> SideResponse {
        var fields: HTTPFields = [.contentType: "application/json"]
        if !challenge.isEmpty { fields[.wwwAuthenticate] = challenge }
        return SideResponse(status: 401, fields: fields, body: Array(body.utf8))
    }
}
