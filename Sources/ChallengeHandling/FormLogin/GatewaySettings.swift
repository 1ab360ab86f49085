// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import HTTPTypes

/// A login in front of the upstream, recognised by inspecting responses. What is `nil` or empty is the preset's.
package struct GatewaySettings: Sendable, Equatable {
    /// The gateways whose detectors, steps and rules are known.
    package enum Preset: String, Sendable, CaseIterable {
        /// Form login of Java EE: Tomcat, Undertow, Jetty, Liberty.
        case jSecurityCheck = "j-security-check"
        /// Nothing known: `detect` and `login` say all.
        case none
        /// IBM WebSEAL.
        case webseal
    }

    /// The preset.
    package var preset: Preset
    /// The signs of the login page; any of them.
    package var detect: [ResponseMatcher]
    /// The steps of the login.
    package var login: [LoginStep]
    /// Evidence that the login worked; any of them.
    package var success: [ResponseMatcher]
    /// Evidence that it failed, and why; the first that matches.
    package var failed: [FailureMatcher]
    /// The logout on a clean stop.
    package var logout: LogoutSettings?
    /// Fields that the session adds to each request.
    package var inject: [InjectedTemplate] = []
    /// Names of the login's cookies that callers get as well; `nil`: the well-known names of double-submit tokens.
    package var passedCookies: [String]?

    /// The preset with what differs from it.
    package init(
        preset: Preset, detect: [ResponseMatcher] = [], login: [LoginStep] = [], success: [ResponseMatcher] = [],
        failed: [FailureMatcher] = [], logout: LogoutSettings? = nil, inject: [InjectedTemplate] = [],
        passedCookies: [String]? = nil
    ) {
        self.preset = preset
        self.detect = detect
        self.login = login
        self.success = success
        self.failed = failed
        self.logout = logout
        self.inject = inject
        self.passedCookies = passedCookies
    }
}

/// One request of a login, after the page that it may need.
package struct LoginStep: Sendable, Equatable {
    /// The address that the form is submitted to.
    package enum Target: Sendable, Hashable {
        /// A written address.
        case address(AddressReference)
        /// The action of the page's own form, same origin only.
        case form
    }

    /// The form in which the parameters are written.
    package typealias Body = GatewayStep.Body

    /// Fetched first, its cookies kept.
    package var page: AddressReference?
    /// The address of the step; `nil` is the preset's.
    package var target: Target?
    /// The method.
    package var method: HTTPRequest.Method = .post
    /// The parameters, in the order of the file.
    package var parameters: [NamedTemplate] = []
    /// True if the hidden inputs of the page's form go along; `nil` is the preset's.
    package var hiddenFields: Bool?
    /// The form in which the parameters are written.
    package var body = Body.form
    /// More fields of the request.
    package var headers: [InjectedTemplate] = []
    /// The time that is waited for the answer.
    package var timeout: Duration = .seconds(10)
    /// Evidence that this step worked; any of it.
    package var success: [ResponseMatcher] = []
    /// Evidence that it failed, and why, ahead of the gateway's.
    package var failed: [FailureMatcher] = []
    /// The values that are taken from its answer, and the place of the seconds for which they are good.
    package var extraction = GatewayExtraction()

    /// A step; what is left out is the preset's.
    package init(
        page: AddressReference? = nil, target: Target? = nil, method: HTTPRequest.Method = .post,
        parameters: [NamedTemplate] = [], hiddenFields: Bool? = nil, body: Body = .form,
        headers: [InjectedTemplate] = [], timeout: Duration = .seconds(10)
    ) {
        self.page = page
        self.target = target
        self.method = method
        self.parameters = parameters
        self.hiddenFields = hiddenFields
        self.body = body
        self.headers = headers
        self.timeout = timeout
    }
}

/// The logout on a clean stop.
package struct LogoutSettings: Sendable, Equatable {
    /// Its address.
    package var url: AddressReference
    /// The method.
    package var method: HTTPRequest.Method = .get

    /// A request to `url`.
    package init(url: AddressReference, method: HTTPRequest.Method = .get) {
        self.url = url
        self.method = method
    }
}
