// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension ResponseMatcher {
    /// The conditions as the configuration writes them, for people who ask which one matched.
    public var summary: String {
        var parts: [String] = []
        func add(_ name: String, _ values: [String]) {
            if !values.isEmpty { parts.append("\(name) \(values.joined(separator: ", "))") }
        }
        add("status", statuses.map(String.init))
        add("header", fields.map { field in field.contains.map { "\(field.name): \($0)" } ?? "\(field.name)" })
        add("cookie", cookies)
        add("body-contains", bodyContains)
        add("json", json.map { condition in condition.pointer.source + (condition.text.map { ": \($0)" } ?? "") })
        add("redirect-to", redirectTo)
        add("content-type", contentTypes)
        add("form-action", formAction.map { [$0] } ?? [])
        add("form-fields", formFields)
        if hasPasswordForm { parts.append("a form with one password input") }
        if let redirectParameter {
            parts.append("a redirect with \(redirectParameter.name)=\(redirectParameter.value)")
        }
        return parts.joined(separator: "; ")
    }
}

extension ResponseInspection {
    /// Returns the first of `matchers` that matches. The body is there.
    mutating func first(of matchers: [ResponseMatcher]) -> ResponseMatcher? {
        for matcher in matchers where match(matcher) == .matches { return matcher }
        return nil
    }
}
