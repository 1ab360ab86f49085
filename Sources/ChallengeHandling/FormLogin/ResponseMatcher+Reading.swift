// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import SettingsReading

extension ResponseMatcher {
    /// One matcher of `detect` or `success`.
    static func read(_ value: Value) -> ResponseMatcher? {
        guard let fields = value.fields() else { return nil }
        let matcher = read(fields)
        fields.finish()
        return matcher
    }

    /// The signs among `fields`, of which there must be one.
    fileprivate static func read(_ fields: Fields) -> ResponseMatcher? {
        var matcher = ResponseMatcher()
        matcher.statuses = fields["status"]?.listOrOne().compactMap { $0.integer(in: 100...599) } ?? []
        matcher.fields = fields["header"].map(fieldMatchers) ?? []
        matcher.cookies = fields["cookie"]?.listOrOne().compactMap { $0.word() } ?? []
        matcher.bodyContains = fields["body-contains"]?.listOrOne().compactMap { $0.word() } ?? []
        matcher.redirectTo = fields["redirect-to"]?.listOrOne().compactMap { $0.word() } ?? []
        matcher.contentTypes = fields["content-type"]?.listOrOne().compactMap { $0.mediaType() } ?? []
        matcher.formAction = fields["form-action"]?.word()
        matcher.formFields = fields["form-fields"]?.listOrOne().compactMap { $0.word() } ?? []
        let signs = [
            "status", "header", "cookie", "body-contains", "redirect-to", "content-type", "form-action", "form-fields",
        ]
        guard signs.contains(where: fields.has) else {
            fields.value.report("names no sign and would match every response: one of \(signs.joined(separator: ", "))")
            return nil
        }
        return matcher
    }

    /// Names of fields, or names and what they contain.
    private static func fieldMatchers(_ value: Value) -> [FieldMatcher] {
        guard !value.isMapping else {
            return (value.members() ?? []).compactMap { name, member in
                guard let field = member.responseFieldName(name) else { return nil }
                return FieldMatcher(name: field, contains: member.node.isNull ? nil : member.text())
            }
        }
        return value.listOrOne().compactMap { element in
            element.word().flatMap(element.responseFieldName).map { FieldMatcher(name: $0, contains: nil) }
        }
    }
}

extension FailureMatcher {
    /// One matcher of `failed`.
    static func read(_ value: Value) -> FailureMatcher? {
        guard let fields = value.fields() else { return nil }
        let matcher = ResponseMatcher.read(fields)
        let cause = fields["because"]?.choice(Cause.self)
        fields.finish()
        return matcher.map { FailureMatcher(matcher: $0, cause: cause ?? .wrongPassword) }
    }
}

extension Value {
    fileprivate func mediaType() -> String? {
        guard let text = word() else { return nil }
        let parts = text.lowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPField.Name(String($0)) != nil }) else {
            report("\"\(text)\" is no media type, such as text/html")
            return nil
        }
        return text.lowercased()
    }

    fileprivate func responseFieldName(_ text: String) -> HTTPField.Name? {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else {
            report("\"\(text)\" is no name of a field")
            return nil
        }
        return name
    }
}
