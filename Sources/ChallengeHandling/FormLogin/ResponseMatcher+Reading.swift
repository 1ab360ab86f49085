// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import SettingsReading

extension ResponseMatcher {
    fileprivate enum Keys {
        static let status = Key(
            "status", .list(of: .integer(in: 100...599)), without: "any",
            "Statuses; the response must have one of them.")
        static let header = Key(
            "header", ValueForm("names, or names and texts") { ResponseMatcher.fieldMatchers($0) }, without: "any",
            "Fields that the response must have, optionally with a text that they contain.")
        static let cookie = Key(
            "cookie", .list(of: .word.described(as: "name", plural: "names")), without: "any",
            "Cookies that the response must set.")
        static let bodyContains = Key(
            "body-contains", .list(of: .word), without: "any",
            "Texts in the first 64 KiB of the body, which must be `text/html` unless `content-type` says otherwise."
        )
        static let json = Key(
            "json", ValueForm("mapping of JSON pointers to texts") { ResponseMatcher.jsonMatchers($0) }, without: "any",
            "Values in the first 64 KiB of a JSON body (RFC 6901) that contain, or are, the text.")
        static let redirectTo = Key(
            "redirect-to", .list(of: .word), without: "any",
            "Texts that the `Location` field must contain, as written or as the whole address that it means.")
        static let contentType = Key(
            "content-type", .list(of: .mediaType), without: "any", "Media types; the response must have one of them.")
        static let formAction = Key(
            "form-action", .word, without: "any", "End of the action of a form of the page.")
        static let formFields = Key(
            "form-fields", .list(of: .word.described(as: "name", plural: "names")), without: "any",
            "Inputs that this form must have.")

        static let all: [any SchemaKey] = [
            status, header, cookie, bodyContains, json, redirectTo, contentType, formAction, formFields,
        ]
    }

    /// Table of `challenges.detect`, also for `success`.
    static let section = KeySection("challenges.detect", Keys.all)

    /// Returns the conditions among `fields`, at least one.
    fileprivate static func read(_ fields: Fields) -> ResponseMatcher? {
        var matcher = ResponseMatcher()
        matcher.statuses = fields[Keys.status] ?? []
        matcher.fields = fields[Keys.header] ?? []
        matcher.cookies = fields[Keys.cookie] ?? []
        matcher.bodyContains = fields[Keys.bodyContains] ?? []
        matcher.json = fields[Keys.json] ?? []
        matcher.redirectTo = fields[Keys.redirectTo] ?? []
        matcher.contentTypes = fields[Keys.contentType] ?? []
        matcher.formAction = fields[Keys.formAction]
        matcher.formFields = fields[Keys.formFields] ?? []
        guard Keys.all.contains(where: { fields.written($0) != nil }) else {
            let names = Keys.all.map(\.name).joined(separator: ", ")
            fields.value.report("is empty and would match every response: add one of \(names)")
            return nil
        }
        return matcher
    }

    /// Returns pointers, with the texts of their values; without a text, any value will do.
    private static func jsonMatchers(_ value: Value) -> [JSONMatcher] {
        (value.members() ?? []).compactMap { written, member in
            guard let pointer = JSONPointer(written) else {
                member.report("\"\(written)\" is not a JSON pointer (use one such as /error/code, RFC 6901)")
                return nil
            }
            return JSONMatcher(pointer: pointer, text: member.node.isNull ? nil : member.text())
        }
    }

    /// Returns names of fields, or names with texts that the fields contain.
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
    private static let cause = Key<Cause>(
        "because", .choice, default: .wrongPassword, "Meaning of the response, in `failed` only.")

    /// Table of `challenges.detect` for `failed`: the conditions and the cause.
    static let section = KeySection("challenges.detect", ResponseMatcher.Keys.all + [cause])

    fileprivate static func read(_ fields: Fields) -> FailureMatcher? {
        let cause = fields[cause]
        return ResponseMatcher.read(fields).map { FailureMatcher(matcher: $0, cause: cause) }
    }
}

extension ValueForm where Content == [ResponseMatcher] {
    /// Matchers of `detect` or `success`.
    static let matchers = list(
        of: .mapping(ResponseMatcher.section, ResponseMatcher.read).described(as: "matcher", plural: "matchers"))
}

extension ValueForm where Content == [FailureMatcher] {
    /// Matchers of `failed`.
    static let failureMatchers = list(
        of: .mapping(FailureMatcher.section, FailureMatcher.read).described(as: "matcher", plural: "matchers"))
}

extension ValueForm where Content == String {
    fileprivate static let mediaType = ValueForm("media type") { $0.mediaType() }
}

extension Value {
    fileprivate func mediaType() -> String? {
        guard let text = word() else { return nil }
        let parts = text.lowercased().split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ HTTPField.Name(String($0)) != nil }) else {
            report("\"\(text)\" is not a media type, such as text/html")
            return nil
        }
        return text.lowercased()
    }

    fileprivate func responseFieldName(_ text: String) -> HTTPField.Name? {
        guard let name = HTTPField.Name(text), !text.hasPrefix(":") else {
            report("\"\(text)\" is not the name of a field")
            return nil
        }
        return name
    }
}
