// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A field against forged requests, which scripts of pages fill in from a cookie.
package struct ForgeryToken: Sendable, Equatable {
    /// The tokens of frameworks by their cookies: Django; Tornado and Jupyter; Laravel, Angular and Spring.
    private static let known = [
        ForgeryToken(cookie: "csrftoken", field: "X-CSRFToken", value: "{cookie:csrftoken}"),
        ForgeryToken(cookie: "_xsrf", field: "X-XSRFToken", value: "{cookie:_xsrf}"),
        ForgeryToken(cookie: "XSRF-TOKEN", field: "X-XSRF-TOKEN", value: "{decoded-cookie:XSRF-TOKEN}"),
    ]

    private let cookie: String
    private let field: String
    private let value: String

    /// Returns the line `inject` for the cookies of a session; `nil` if no cookie is such a token.
    package static func line(for cookies: Set<String>) -> ConfigurationLine? {
        let tokens = known.filter { cookies.contains($0.cookie) }
        guard !tokens.isEmpty else { return nil }
        let fields = tokens.map { token in
            "\(token.field): { value: \"\(token.value)\", on: [POST, PUT, PATCH, DELETE] }"
        }
        return ConfigurationLine(
            "inject: { \(fields.joined(separator: ", ")) }", "token against forged requests, from the session's cookie")
    }
}
