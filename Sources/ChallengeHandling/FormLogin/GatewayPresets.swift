// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension GatewayRules {
    /// Form login of Java EE: Tomcat, Undertow and WildFly, Jetty, Liberty and WebSphere.
    ///
    /// Tomcat and Undertow forward to the login page, which then has the address that was asked for; Jetty and Liberty
    /// redirect. Only Liberty's redirect tells itself, by a cookie; Jetty's is known by what `detect` says of it.
    public static let jSecurityCheck = GatewayRules(
        detect: [
            ResponseMatcher(formAction: "j_security_check"),
            // A request too large to be saved over the login (Tomcat's maxSavePostSize).
            ResponseMatcher(statuses: [403], bodyContains: ["too large to be cached during"]),
            ResponseMatcher(statuses: [302], cookies: ["WASReqURL"]),
        ],
        steps: [
            GatewayStep(
                target: .formEnding("j_security_check"),
                parameters: parts([("j_username", "{username}"), ("j_password", "{password}")]), hiddenFields: true)
        ],
        passingCookies: ["WASReqURL", "WASPostParam"])

    /// IBM WebSEAL (Tivoli Access Manager, Security Access Manager, Verify Access).
    public static let webSEAL = GatewayRules(
        detect: [
            ResponseMatcher(formAction: "pkmslogin.form"),
            ResponseMatcher(redirectParameter: .init(name: "TAM_OP", value: "login")),
            // Request Caching Failed: too large to be kept over the login.
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

    private static func parts(_ parts: [(String, String)]) -> [GatewayStep.Part] {
        parts.compactMap { name, text in (try? TextTemplate(text)).map { GatewayStep.Part(name: name, value: $0) } }
    }

    /// What a redirect to WebSEAL's own pages says (`local-response-redirect`).
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
