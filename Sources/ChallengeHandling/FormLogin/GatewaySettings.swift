// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
package import SettingsReading

/// Settings of `gateway`: a login in front of the upstream. Values that are nil or empty are the preset's.
package struct GatewaySettings: Sendable, Equatable {
    /// Gateways with known detectors, steps and rules.
    package enum Preset: String, Sendable, CaseIterable {
        /// Any login page, recognised by its form.
        case form
        /// Form login of Java EE: Tomcat, Undertow, Jetty, Liberty.
        case jSecurityCheck = "j-security-check"
        /// An unknown gateway: `detect` and `login` describe all of it.
        case none
        /// IBM WebSEAL.
        case webseal
    }

    /// Preset.
    package var preset: Preset
    /// Matchers of the login page; one is enough.
    package var detect: [ResponseMatcher]
    /// Steps of the login.
    package var login: [LoginStep]
    /// Evidence that the login worked; one match is enough.
    package var success: [ResponseMatcher]
    /// Evidence that the login failed, and why. The first match decides.
    package var failed: [FailureMatcher]
    /// Logout on a clean stop.
    package var logout: LogoutSettings?
    /// Fields that the session adds to each request.
    package var inject: [InjectedTemplate] = []
    /// Names of the login's cookies that callers get too; nil: the well-known names of double-submit tokens.
    package var passedCookies: [String]?
    /// Helper that logs in instead of steps.
    package var helper: HelperLoginSettings?

    /// Creates a preset with changes.
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

extension GatewaySettings {
    private enum Keys {
        static let preset = Key(
            required: "gateway", ValueForm<Preset>.choice,
            "Login page in front of the upstream: any `form` with one password input, a known gateway, or `none`.")
        static let detect = Key(
            "detect", .matchers, without: "the preset's", "Matchers of the login page; one match is enough.")
        static let success = Key(
            "success", .matchers,
            without:
                "new cookies or a redirect, unless `prove-at` or the upstream's address still shows the login page",
            "Evidence that the login worked; one match is enough.")
        static let failed = Key(
            "failed", .failureMatchers, without: "the preset's, after these",
            "Evidence that the login failed, and why; the first match decides.")
        static let cookies = Key(
            "cookies", ValueForm<[String]>.mapping(passSection) { $0[pass] }, without: "",
            "Cookies of the login that callers get too.")
        static let inject = Key(
            "inject", .fieldTemplatesAfterLogin, "Fields that the session adds to each request.")
        static let logout = Key(
            "logout", .mapping(LogoutSettings.section, LogoutSettings.read), without: "no logout",
            "Request that ends the session at the server.")

        static let pass = Key(
            "pass", .list(of: .cookieName),
            without: CookieJar.doubleSubmitNames.sorted().map { "`\($0)`" }.joined(separator: ", "),
            "Names of cookies that callers get too; a caller's own value replaces the session's."
        )
        static let passSection = KeySection("challenges.cookies", [pass])
    }

    /// The preset and its changes. For a gateway, `inject` has the fields of the session.
    package static let keys: [any SchemaKey] = [
        Keys.preset, Keys.detect, Keys.success, Keys.failed, Keys.cookies, Keys.inject, Keys.logout,
    ]

    /// Reads the preset and its changes.
    package static func read(_ fields: Fields, _ context: ChallengeContext) -> GatewaySettings? {
        let login = context.login
        let preset = fields[Keys.preset]
        let hasHelper = login.map(HelperLoginSettings.isNamed) ?? false
        let steps = login.map { $0.isScalar || hasHelper ? [] : $0.listOrOne() } ?? []
        var settings = GatewaySettings(
            preset: preset ?? .none, detect: fields[Keys.detect] ?? [],
            login: steps.enumerated().compactMap { LoginStep.read($1, isFirst: $0 == 0) },
            success: fields[Keys.success] ?? [], failed: fields[Keys.failed] ?? [], logout: fields[Keys.logout])
        settings.inject = fields[Keys.inject] ?? []
        settings.passedCookies = fields[Keys.cookies]
        if hasHelper, let login {
            settings.helper = .read(login, evidence: [fields.written(Keys.success), fields.written(Keys.failed)])
        }
        settings.checkExtraction(login)
        settings.checkProviders(login, at: context.upstream)
        guard preset == Preset.none else { return preset.map { _ in settings } }
        if fields.written(Keys.detect)?.listOrOne().isEmpty != false {
            fields.value.report("the preset none needs `detect`: without it, the login page cannot be recognised")
        }
        if steps.isEmpty, !hasHelper {
            fields.value.report("the preset none needs `login` with the address of the form")
        }
        if !steps.isEmpty, settings.login.contains(where: { $0.target == nil }) {
            login?.report("each step of the preset none needs a url")
        }
        return settings
    }

    /// Reports a value that is extracted from an answer and never sent.
    private func checkExtraction(_ login: Value?) {
        var used = inject.fieldNames
        for step in self.login.reversed() {
            // A cookie is sent anyway: extracted, it is evidence.
            for part in step.extraction.parts where !used.contains(part.name) && !part.source.isCookie {
                login?.report(
                    "{\(part.name)} is extracted but never sent: add `inject`, or a parameter of a later step, or put it into its `url`"
                )
            }
            used.formUnion(step.fieldNames.union(step.namesInAddresses))
        }
    }

    /// Returns a keyword, or `when` of the only or first step.
    package static func loginTime(_ login: Value) -> LoginTime? {
        login.isScalar ? login.choice(LoginTime.self) : LoginStep.time(login)
    }

    /// Warns if a page may decide the form's address, and no configured address guarantees that page.
    ///
    /// The preset `form` means the same as a written `url: form`.
    package func check(_ challenge: ChallengeSettings, login value: Value) {
        let isDecidedByPage =
            login.first.map { $0.target == .form || $0.target == nil && preset == .form } ?? (preset == .form)
        let isAnotherLogin =
            HelperLoginSettings.isNamed(in: value) || value.listOrOne().first?.member("through") != nil
        guard isDecidedByPage, !isAnotherLogin, login.first?.page == nil, challenge.proofPath == nil else { return }
        value.report(
            "until the first login succeeds, the page at the upstream's address, or one to which the server redirects a "
                + "request, decides where the form is sent: set `login.page` or `login.url`, or set `prove-at` to a path that "
                + "needs a session",
            severity: .warning)
    }
}

extension ValueForm where Content == String {
    fileprivate static let cookieName = ValueForm("cookie name") { $0.cookieName() }
}

extension Value {
    /// Returns the name of a cookie, which is a token (RFC 6265 §4.1.1).
    fileprivate func cookieName() -> String? {
        guard let name = word() else { return nil }
        guard HTTPField.Name(name) != nil else {
            report("\"\(name)\" is not a valid cookie name (no white space, and none of = ; ,)")
            return nil
        }
        return name
    }
}
