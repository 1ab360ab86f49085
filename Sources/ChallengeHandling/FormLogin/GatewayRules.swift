// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Rules of one gateway: its login page, its form, and the meaning of its answers.
public struct GatewayRules: Sendable, Equatable {
    /// Matchers of the login page and of redirects to it, which start a login. Any of them.
    public var detect: [ResponseMatcher]
    /// Further matchers of answers that ask for a login; any of them.
    public var markers: [ResponseMatcher]
    /// Matchers of redirects within the origin that seem to lead to a login page. They start a search for the page, and
    /// say nothing about a login that was run.
    public var hints: [ResponseMatcher]
    /// The steps of the login; at least one.
    public var steps: [GatewayStep]
    /// Evidence that the login worked; any of it. Without a matcher the evidence is a request that meets no login page.
    public var success: [ResponseMatcher]
    /// Evidence that the login failed, and the cause; the first match counts.
    public var failed: [FailureMatcher]
    /// Names of cookies that serve only the login and must not be sent later.
    public var passingCookies: Set<String>
    /// Names of session cookies that callers get as well. A caller's own value replaces the session's.
    public var callerCookies = CookieJar.doubleSubmitNames
    /// Fields that the session adds to each request. They are made of the credential and of extracted values.
    public var inject: [InjectedTemplate]

    /// Creates rules.
    public init(
        detect: [ResponseMatcher], markers: [ResponseMatcher] = [], hints: [ResponseMatcher] = [], steps: [GatewayStep],
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = [], passingCookies: Set<String> = [],
        inject: [InjectedTemplate] = []
    ) {
        self.detect = detect
        self.markers = markers
        self.hints = hints
        self.steps = steps
        self.success = success
        self.failed = failed
        self.passingCookies = passingCookies
        self.inject = inject
    }
}

/// One request of a login, after the page that it may need.
public struct GatewayStep: Sendable, Equatable {
    /// Address that the form is submitted to.
    public enum Target: Sendable, Hashable {
        /// An address, absolute or relative to the page (RFC 3986 §5).
        case address(String)
        /// The action of the page's own form, at the page's origin only.
        case form
        /// The action of the page's form. This address relative to the page if no action has this ending.
        case formEnding(String)
    }

    /// Encoding of the parameters.
    public enum Body: String, Sendable, CaseIterable {
        /// `application/x-www-form-urlencoded`.
        case form
        /// `application/json`.
        case json
    }

    /// A parameter or field and the template of its value.
    public typealias Part = NamedTemplate

    /// The page to fetch first, absolute or relative to the upstream; its cookies are kept. `nil`: in the first step
    /// `prove-at`, the upstream's address, or finally the challenged one shows the page; in later steps the previous
    /// answer is the page.
    public var page: String?
    /// The address of the step.
    public var target: Target
    /// The method, usually `POST`. With `GET` the parameters are the query.
    public var method: String
    /// The parameters, in order.
    public var parameters: [Part]
    /// True if the hidden inputs of the page's form are submitted as well. They precede the parameters, which replace
    /// inputs of their names.
    public var hiddenFields: Bool
    /// True if the page's login form determines the inputs for name and password, and the other parameters. Configured
    /// parameters replace or extend these.
    public var fillsPasswordForm: Bool
    /// The encoding of the parameters.
    public var body: Body
    /// The JSON body, if it is more than an object of the parameters as texts.
    public var document: AnswerTemplate?
    /// Further fields of the request.
    public var headers: [Part]
    /// The timeout of the answer.
    public var timeout: Duration
    /// Evidence that this step worked, for any step but the last. If configured, one matcher must match.
    public var success: [ResponseMatcher]
    /// Evidence that this step failed, checked before that of the whole login.
    public var failed: [FailureMatcher]
    /// The values extracted from its answer, which are evidence that the step worked.
    public var extraction: GatewayExtraction

    /// Creates a step. The defaults are those of `submitLoginForm` in MobileFirst: POST and 10 s.
    public init(
        page: String? = nil, target: Target, method: String = "POST", parameters: [Part] = [],
        hiddenFields: Bool = false, fillsPasswordForm: Bool = false, body: Body = .form, headers: [Part] = [],
        timeout: Duration = .seconds(10),
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = [],
        extraction: GatewayExtraction = GatewayExtraction()
    ) {
        self.page = page
        self.target = target
        self.method = method
        self.parameters = parameters
        self.hiddenFields = hiddenFields
        self.fillsPasswordForm = fillsPasswordForm
        self.body = body
        self.headers = headers
        self.timeout = timeout
        self.success = success
        self.failed = failed
        self.extraction = extraction
    }

    /// True if its extracted values prove that the step worked. Those in the head or in a page may be there anyway if a
    /// form was submitted.
    var provesByExtraction: Bool { !extraction.isEmpty && (needsNoPage || extraction.isOfJSON) }

    /// True if the step needs no page: it uses an API without pages.
    var needsNoPage: Bool {
        guard page == nil, !hiddenFields, case .address = target else { return false }
        return !extraction.isEmpty || document != nil
    }
}

/// Detector of a gateway's login page among the responses of an upstream.
///
/// Fields, status and redirect are examined at once. The body is requested only if a matcher needs it and everything
/// else matches: for responses that can be a page, in practice `text/html`.
public struct GatewayDetector: ChallengeDetector {
    /// Matchers of the login page; any of them.
    public let matchers: [ResponseMatcher]
    /// Matchers of redirects that seem to lead to the login page, within the origin only.
    private let hints: [ResponseMatcher]
    /// The name that `explain` shows.
    public let kind: String
    /// Filter of the responses that a matcher could match.
    public let filter: ResponseFilter

    /// Creates a detector for `rules.detect`; `kind` names the gateway.
    public init(_ rules: GatewayRules, kind: String = "gateway") {
        matchers = rules.detect
        hints = rules.hints
        filter = ResponseFilter(matchers + hints)
        self.kind = kind
    }

    /// Returns a challenge for a login page or a redirect to it. Whether the request carried the session does not
    /// matter: a login page means that the session is not valid (any more).
    public func examine(_ response: ExaminedResponse, hasSession: Bool) -> Challenge {
        var inspection = ResponseInspection(response)
        return switch inspection.matchAny(matchers) {
        case .matches: .challenged()
        case .needsBody: .needsBody
        case .doesNot: seemsToLeadToLogin(response, &inspection) ? .challenged() : .pass
        }
    }

    /// Returns true if the login page may be behind a response that does not show it.
    public func mayConceal(_ response: ExaminedResponse) -> Bool {
        ResponseInspection(response).mayConceal(matchers)
    }

    /// Returns a description of the matcher that identified a login page.
    public func sign(of response: ExaminedResponse) -> String? {
        var inspection = ResponseInspection(response)
        return inspection.first(of: matchers)?.summary
    }

    /// Returns whether the path of a redirect or refresh within the origin, not its query, has a word of a login page.
    private func seemsToLeadToLogin(_ response: ExaminedResponse, _ inspection: inout ResponseInspection) -> Bool {
        guard !hints.isEmpty else { return false }
        let isRedirect = inspection.matchAny(hints) == .matches
        let target = isRedirect ? response.redirectTarget : PageRefresh(of: response)?.target
        guard let next = target, next.origin == response.url.origin else { return false }
        let path = Array(next.path.utf8)
        return hints.contains { $0.redirectTo.allSatisfy { path.containsWord(lowercased: Array($0.utf8)) } }
    }
}

extension GatewayRules {
    /// Form login of Java EE: Tomcat, Undertow and WildFly, Jetty, Liberty and WebSphere.
    ///
    /// Tomcat and Undertow forward to the login page, which then has the requested address; Jetty and Liberty redirect.
    /// Only Liberty's redirect identifies itself, by a cookie; Jetty's is recognised by `detect`.
    public static let jSecurityCheck = GatewayRules(
        detect: [
            ResponseMatcher(formAction: "j_security_check"),
            // A request too large to be saved during the login (Tomcat's maxSavePostSize).
            ResponseMatcher(statuses: [403], bodyContains: ["too large to be cached during"]),
            ResponseMatcher(statuses: [302], cookies: ["WASReqURL"]),
        ],
        steps: [
            GatewayStep(
                target: .formEnding(servletEnding),
                parameters: parts([("j_username", "{username}"), ("j_password", "{password}")]), hiddenFields: true)
        ],
        passingCookies: ["WASReqURL", "WASPostParam"])

    /// Ending of the address of a servlet container's login (Jakarta Servlet §13.6.3).
    static let servletEnding = "j_security_check"

    /// IBM WebSEAL (Tivoli Access Manager, Security Access Manager, Verify Access).
    public static let webSEAL = GatewayRules(
        detect: [
            ResponseMatcher(formAction: "pkmslogin.form"),
            ResponseMatcher(redirectParameter: .init(name: "TAM_OP", value: "login")),
            // Request Caching Failed: the request is too large to be saved during the login.
            ResponseMatcher(statuses: [500], bodyContains: ["38cf013d"]),
        ],
        steps: [
            GatewayStep(
                target: .formEnding("/pkmslogin.form"),
                parameters: parts([
                    ("username", "{username}"), ("password", "{password}"), ("login-form-type", "pwd"),
                ]), hiddenFields: true)
        ],
        failed: operations([
            ("acct_locked", .locked), ("acct_inactivated", .locked), ("passwd_exp", .passwordExpired),
            ("passwd", .passwordExpired), ("too_many_sessions", .tooManySessions), ("error", .unavailable),
        ])
            + codes([
                ("HPDIA0306W", .locked), ("HPDIA0234W", .locked), ("HPDIA0309W", .locked), ("HPDIA0205W", .locked),
                ("acct_locked", .locked), ("HPDIA0204W", .passwordExpired), ("38b9a41f", .tooManySessions),
                ("Additional Login Denied", .tooManySessions), ("38cf013d", .unavailable),
                ("HPDIA0200W", .wrongPassword),
            ]))

    /// Words in the paths of login pages.
    static let loginWords = ["login", "log-in", "log_in", "logon", "signin", "sign-in", "sign_in"]

    /// A login page of any application, recognised by its form with one password input.
    ///
    /// The page's form is filled in as a browser would do it: the user's name is put into the text input before the
    /// password, and hidden inputs and the submit button are included.
    public static let passwordForm = GatewayRules(
        detect: [ResponseMatcher(hasPasswordForm: true)],
        hints: loginWords.map { ResponseMatcher(redirectTo: [$0]) },
        steps: [GatewayStep(target: .form, hiddenFields: true, fillsPasswordForm: true)])

    private static func parts(_ parts: [(String, String)]) -> [GatewayStep.Part] {
        parts.compactMap { name, text in (try? TextTemplate(text)).map { GatewayStep.Part(name: name, value: $0) } }
    }

    /// Returns matchers of redirects to WebSEAL's own pages (`local-response-redirect`).
    private static func operations(_ causes: [(String, FailureMatcher.Cause)]) -> [FailureMatcher] {
        causes.map { value, cause in
            FailureMatcher(
                matcher: ResponseMatcher(redirectParameter: .init(name: "TAM_OP", value: value)), cause: cause)
        }
    }

    private static func codes(_ causes: [(String, FailureMatcher.Cause)]) -> [FailureMatcher] {
        causes.map { FailureMatcher(matcher: ResponseMatcher(bodyContains: [$0]), cause: $1) }
    }
}
