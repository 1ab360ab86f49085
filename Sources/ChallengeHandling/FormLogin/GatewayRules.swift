// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What is known of one gateway: how its login page is told, how its form is filled, and what its answers mean.
public struct GatewayRules: Sendable, Equatable {
    /// What tells the login page, or a redirect to it, and so asks for a login; any of them.
    public var detect: [ResponseMatcher]
    /// What else tells in an answer that nobody is logged in; any of them.
    public var markers: [ResponseMatcher]
    /// The steps of the login; at least one.
    public var steps: [GatewayStep]
    /// Evidence that the login worked, any of it. Where none is named it is a request that meets no login page any more.
    public var success: [ResponseMatcher]
    /// Evidence that it failed, and why; the first that matches.
    public var failed: [FailureMatcher]
    /// Cookies that only serve the way to the login, by name, and must not be sent later.
    public var passingCookies: Set<String>
    /// Cookies of the session that callers get as well, by name; a caller's own value takes the place of the session's.
    public var callerCookies = CookieJar.doubleSubmitNames
    /// Fields that the session adds to each request, made of the credential and of what the steps took from answers.
    public var inject: [GatewayStep.Part]

    /// Rules.
    public init(
        detect: [ResponseMatcher], markers: [ResponseMatcher] = [], steps: [GatewayStep],
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = [], passingCookies: Set<String> = [],
        inject: [GatewayStep.Part] = []
    ) {
        self.detect = detect
        self.markers = markers
        self.steps = steps
        self.success = success
        self.failed = failed
        self.passingCookies = passingCookies
        self.inject = inject
    }
}

/// One request of a login, after the page that it may need.
public struct GatewayStep: Sendable, Equatable {
    /// Where the form is submitted to.
    public enum Target: Sendable, Hashable {
        /// An address, absolute or relative to the page (RFC 3986 §5).
        case address(String)
        /// The action of the page's own form, at the page's origin only.
        case form
        /// The same, and where the page has no form whose action ends so, this relative to the page.
        case formEnding(String)
    }

    /// How the parameters are written.
    public enum Body: String, Sendable, CaseIterable {
        /// `application/x-www-form-urlencoded`.
        case form
        /// `application/json`.
        case json
    }

    /// A parameter or field and what its value is made of.
    public typealias Part = NamedTemplate

    /// Fetched first, its cookies kept: an address, absolute or relative to the upstream. `nil`: in the first step
    /// `prove-at`, the upstream's address or at last the challenged one shows the page, in later ones the answer before is the page.
    public var page: String?
    /// Where the step goes.
    public var target: Target
    /// The method: `POST`, mostly. With `GET` the parameters are the query.
    public var method: String
    /// The parameters, in order.
    public var parameters: [Part]
    /// Whether the hidden inputs of the page's form go along, before the parameters and unless one of them is of that name.
    public var hiddenFields: Bool
    /// How the parameters are written.
    public var body: Body
    /// More fields of the request.
    public var headers: [Part]
    /// How long is waited for the answer.
    public var timeout: Duration
    /// Evidence that this step worked, which every step but the last may have; where named, one must match.
    public var success: [ResponseMatcher]
    /// Evidence that this step failed, ahead of that of the whole login.
    public var failed: [FailureMatcher]
    /// What is taken from its answer, which is evidence of its own that it worked.
    public var extraction: GatewayExtraction

    /// A step; the defaults are those of `submitLoginForm` in MobileFirst: POST and 10 s.
    public init(
        page: String? = nil, target: Target, method: String = "POST", parameters: [Part] = [],
        hiddenFields: Bool = false, body: Body = .form, headers: [Part] = [], timeout: Duration = .seconds(10),
        success: [ResponseMatcher] = [], failed: [FailureMatcher] = [],
        extraction: GatewayExtraction = GatewayExtraction()
    ) {
        self.page = page
        self.target = target
        self.method = method
        self.parameters = parameters
        self.hiddenFields = hiddenFields
        self.body = body
        self.headers = headers
        self.timeout = timeout
        self.success = success
        self.failed = failed
        self.extraction = extraction
    }

    /// Whether nothing of a page is needed for it: it is an interface for programs, which has none.
    var needsNoPage: Bool {
        guard page == nil, !hiddenFields, !extraction.isEmpty, case .address = target else { return false }
        return true
    }
}
