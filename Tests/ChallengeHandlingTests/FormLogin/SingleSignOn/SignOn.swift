// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import Secrets
import Testing

/// An application whose users log in at an identity provider.
enum SignOn {
    static let app = Origin(scheme: .https, host: "app.example.com")
    static let wiki = Origin(scheme: .https, host: "wiki.example.com")
    static let provider = Origin(scheme: .https, host: "idp.example.com")
    static let password = "pass%22word"
    static let form = """
        <form method=post action="/login"><input type=hidden name=lt value=1><input name=user>
        <input type=password name=pass></form>
        """
    static let filledIn = "lt=1&user=ann-u&pass=pass%22word"

    static func key(_ upstream: Origin = app) -> LatchKey {
        LatchKey(origin: upstream, challenge: upstream.host, credential: "ann")
    }

    static func login(
        from upstream: Origin = app, through providers: [Origin] = [provider],
        _ sessions: ProviderSessions = ProviderSessions(),
        rules: GatewayRules = rules(), challenged: String? = "/home", proof: String? = nil
    ) throws -> SignOnLogin {
        let route = SignOnRoute(from: upstream, through: providers)
        let gateway = GatewayLogin(
            rules, key: key(upstream), base: try #require(WebURL("\(upstream)/")),
            proof: try proof.map { try #require(WebURL("\(upstream)\($0)")) },
            challenged: try challenged.map { try #require(WebURL("\(upstream)\($0)")) })
        return SignOnLogin(gateway, on: route, sessions.sessions(on: route, for: gateway.key))
    }

    static func rules(
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = [], steps: [GatewayStep]? = nil
    ) -> GatewayRules {
        var rules = GatewayRules.passwordForm
        rules.detect = []
        (rules.success, rules.failed) = (success, failed)
        if let steps { rules.steps = steps }
        return rules
    }

    static func get(
        _ address: String, _ status: Int = 200, _ body: String = "", set cookies: [String] = [],
        to location: String? = nil,
        sends cookie: String? = nil, _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        ScriptedStep(.get, address, reply(status, body, cookies, location), location: place) {
            $0.body == nil && $0.fields[.cookie] == cookie
        }
    }

    static func post(
        _ address: String, _ form: String, _ status: Int = 200, _ body: String = "", set cookies: [String] = [],
        to location: String? = nil, sends cookie: String? = nil, _ place: SourceLocation = #_sourceLocation
    ) -> ScriptedStep {
        ScriptedStep(.post, address, reply(status, body, cookies, location), location: place) {
            $0.body?.revealText() == form && $0.fields[.cookie] == cookie
        }
    }

    private static func reply(
        _ status: Int, _ body: String, _ cookies: [String], _ location: String?
    ) -> Result<SideResponse, SideRequestError> {
        var fields: HTTPFields = [.contentType: "text/html"]
        fields[values: .setCookie] = cookies
        fields[.location] = location
        return .success(SideResponse(status: status, fields: fields, body: Array(body.utf8)))
    }

    /// Returns the steps up to the provider's form: a redirect with a cookie of the application.
    static func toForm(_ upstream: Origin = app, form: String = form, sends cookie: String? = nil) -> [ScriptedStep] {
        [
            get("\(upstream)/", 302, set: ["state=1; Path=/"], to: "\(provider)/login?service=\(upstream)/cb"),
            get("\(provider)/login", 200, form, set: ["lb=2; Path=/"], sends: cookie),
        ]
    }

    /// Returns the steps from the form's answer to the application's page.
    static func fromForm(_ upstream: Origin = app) -> [ScriptedStep] {
        [
            post(
                "\(provider)/login", filledIn, 302, set: ["sso=3; Path=/"], to: "\(upstream)/cb?ticket=t", sends: "lb=2"
            )
        ] + back(upstream)
    }

    static func back(_ upstream: Origin = app) -> [ScriptedStep] {
        [
            get("\(upstream)/cb", 302, set: ["sid=4; Path=/", "state=; Path=/; Max-Age=0"], to: "/", sends: "state=1"),
            get("\(upstream)/", 200, "<p>Welcome</p>", sends: "sid=4"),
        ]
    }
}

extension LoginRig {
    /// Returns the cookies of requests to `origin` with `session`.
    func cookies(_ session: Session, at origin: Origin) throws -> String? {
        let url = try #require(WebURL("\(origin)/"))
        return session.cookies?.merged(with: [], for: url, now: LoginRig.now).map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    /// Runs `login`, and leaves the rest of the script for later logins.
    func logInUnfinished(_ login: any SessionLogin) async throws -> Session { try await login.logIn(conversation) }

    /// Number of requests with the password.
    var passwords: Int { requests.sent.count { $0.body?.revealText().contains(SignOn.password) == true } }
}
