// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import FieldBytes
public import HTTPTypes
internal import Secrets

/// Conditions on a response, all of which must be met.
public struct ResponseMatcher: Sendable, Hashable {
    /// Accepted statuses; empty for all.
    public var statuses: [Int]
    /// Required fields, and the text that they contain, if given.
    public var fields: [FieldMatcher]
    /// Names of cookies that are set and not removed.
    public var cookies: [String]
    /// Texts that the body contains, ignoring case; all of them.
    public var bodyContains: [String]
    /// Values that the JSON body must have; all of them.
    public var json: [JSONMatcher]
    /// Texts that the `Location` of a redirect contains, ignoring case; all of them.
    public var redirectTo: [String]
    /// Accepted media types; empty for those of pages, if the body is examined.
    public var contentTypes: [String]
    /// The ending of the path of a form's action, ignoring case. Only the page's forms count, not other text.
    public var formAction: String?
    /// Names of inputs that one form must have: the form of `formAction`, if that is set.
    public var formFields: [String]
    /// True if one form of the page must ask for a password, as `gateway: form` recognises it.
    public var hasPasswordForm: Bool
    /// A parameter in the query of a redirect's `Location`, and its whole value.
    public var redirectParameter: RedirectParameter?

    /// A parameter of a redirect.
    public struct RedirectParameter: Sendable, Hashable {
        /// Its name.
        public var name: String
        /// Its value.
        public var value: String

        /// Creates a parameter.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Creates a matcher. Without conditions it matches every response.
    public init(
        statuses: [Int] = [], fields: [FieldMatcher] = [], cookies: [String] = [], bodyContains: [String] = [],
        json: [JSONMatcher] = [], redirectTo: [String] = [], contentTypes: [String] = [], formAction: String? = nil,
        formFields: [String] = [], hasPasswordForm: Bool = false, redirectParameter: RedirectParameter? = nil
    ) {
        self.statuses = statuses
        self.fields = fields
        self.cookies = cookies
        self.bodyContains = bodyContains
        self.json = json
        self.redirectTo = redirectTo
        self.contentTypes = contentTypes
        self.formAction = formAction
        self.formFields = formFields
        self.hasPasswordForm = hasPasswordForm
        self.redirectParameter = redirectParameter
    }

    /// The default media types of bodies that are searched for texts and forms.
    static let pageTypes = ["text/html", "application/xhtml+xml"]
    /// The default media types of bodies that are searched for JSON values.
    static let jsonTypes = ["application/json", "application/problem+json", "text/json"]
    /// The media types of bodies that are searched, if none are listed.
    var searchedTypes: [String] { json.isEmpty ? Self.pageTypes : Self.jsonTypes }

    /// True if the body must be examined.
    public var needsBody: Bool { !bodyContains.isEmpty || !json.isEmpty || needsForms }
    /// True if the forms of the page must be examined.
    var needsForms: Bool { formAction != nil || !formFields.isEmpty || hasPasswordForm }
}

/// Condition on a field of a response.
public struct FieldMatcher: Sendable, Hashable {
    /// Its name.
    public var name: HTTPField.Name
    /// The text that the field contains, ignoring case; `nil` if its presence is enough.
    public var contains: String?

    /// Creates a condition.
    public init(name: HTTPField.Name, contains: String? = nil) {
        self.name = name
        self.contains = contains
    }
}

/// Evidence that a login failed.
public struct FailureMatcher: Sendable, Hashable {
    /// Cause of a failed login.
    public enum Cause: String, Sendable, CaseIterable {
        /// The account is locked.
        case locked
        /// The password must be changed first.
        case passwordExpired = "password-expired"
        /// Another login is refused while a session exists.
        case tooManySessions = "too-many-sessions"
        /// The server cannot serve at the moment.
        case unavailable
        /// The credential is rejected.
        case wrongPassword = "wrong-password"
    }

    /// The conditions.
    public var matcher: ResponseMatcher
    /// The cause.
    public var cause: Cause

    /// Creates evidence.
    public init(matcher: ResponseMatcher, cause: Cause) {
        self.matcher = matcher
        self.cause = cause
    }
}

/// One response as matchers examine it. Its HTML is parsed once, when the first matcher needs its forms.
struct ResponseInspection {
    /// Result of a matcher.
    enum Match {
        case matches, doesNot
        /// The head matches; the body decides.
        case needsBody
    }

    let response: ExaminedResponse
    private let isOfAnyType: Bool
    private var page: HTMLPage?
    private var json: JSONValue??

    /// Creates an inspection of `response`. With `ofAnyType`, texts are searched in any body, not only in pages.
    init(_ response: ExaminedResponse, ofAnyType: Bool = false) {
        self.response = response
        isOfAnyType = ofAnyType
    }

    /// Returns whether the response meets all conditions of `matcher`.
    mutating func match(_ matcher: ResponseMatcher) -> Match {
        guard matchesHead(matcher) else { return .doesNot }
        guard matcher.needsBody else { return .matches }
        guard mayBeSearched(matcher) else { return .doesNot }
        guard let body = response.body else { return .needsBody }
        guard matcher.bodyContains.allSatisfy({ body.containsWord(lowercased: Array($0.lowercased().utf8)) }) else {
            return .doesNot
        }
        guard matcher.json.isEmpty || hasValues(matcher.json, in: body) else { return .doesNot }
        guard matcher.needsForms else { return .matches }
        return form(matcher) ? .matches : .doesNot
    }

    /// Returns whether any of `matchers` matches. `needsBody` if no matcher matches by the head alone but one may by
    /// the body.
    mutating func matchAny(_ matchers: [ResponseMatcher]) -> Match {
        var result = Match.doesNot
        for matcher in matchers {
            switch match(matcher) {
            case .matches: return .matches
            case .needsBody: result = .needsBody
            case .doesNot: continue
            }
        }
        return result
    }

    func matchesHead(_ matcher: ResponseMatcher) -> Bool {
        if !matcher.statuses.isEmpty, !matcher.statuses.contains(response.status) { return false }
        // A browser shows no page of a redirect.
        if matcher.hasPasswordForm, (300...399).contains(response.status) { return false }
        if !matcher.contentTypes.isEmpty, !matcher.contentTypes.contains(response.mediaType ?? "") { return false }
        guard matchesFields(matcher) else { return false }
        guard !matcher.redirectTo.isEmpty || matcher.redirectParameter != nil else { return true }
        guard (300...399).contains(response.status), let location = response.fields[.location] else { return false }
        // A relative address is compared as written, and as the whole address that it means.
        let resolved = ResponseRedirect(locationsOf: response).target?.description ?? ""
        guard matcher.redirectTo.allSatisfy({ location.containsText($0) || resolved.containsText($0) }) else {
            return false
        }
        guard let parameter = matcher.redirectParameter else { return true }
        let query = location.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst().prefix { $0 != UInt8(ascii: "#") }
        return FormEncoding.value(of: parameter.name, in: Substring(query)) == parameter.value
    }

    /// Returns whether the response has the fields and sets the cookies of `matcher`.
    func matchesFields(_ matcher: ResponseMatcher) -> Bool {
        for field in matcher.fields {
            let values = response.fields[values: field.name]
            guard values.contains(where: { value in field.contains.map { value.containsText($0) } ?? true }) else {
                return false
            }
        }
        guard !matcher.cookies.isEmpty else { return true }
        let set = SetCookie.namesSet(by: response.fields)
        return matcher.cookies.allSatisfy(set.contains)
    }

    /// Returns whether the body can be a login page or an error: of such a media type, and complete (RFC 9110 §9.3.2,
    /// §15.3.5, §15.3.7, §15.4.5).
    private func mayBeSearched(_ matcher: ResponseMatcher) -> Bool {
        guard response.method != .head, ![204, 205, 206, 304].contains(response.status) else { return false }
        // Listed types have matched already.
        return isOfAnyType || !matcher.contentTypes.isEmpty
            || response.mediaType.map(matcher.searchedTypes.contains) == true
    }

    private mutating func hasValues(_ conditions: [JSONMatcher], in body: [UInt8]) -> Bool {
        // Nil until the first matcher asks.
        let value = json ?? JSONValue(parsing: body)
        json = value
        guard let value else { return false }
        return conditions.allSatisfy { $0.matches(value) }
    }

    private mutating func form(_ matcher: ResponseMatcher) -> Bool {
        let page = page ?? HTMLPage(response)
        self.page = page
        let ending = matcher.formAction?.lowercased()
        return page.forms.contains { form in
            (ending.map { form.actionPath.lowercased().hasSuffix($0) } ?? true)
                && matcher.formFields.allSatisfy(form.hasInput)
                && (!matcher.hasPasswordForm || PasswordForm(form) != nil)
        }
    }
}

extension String {
    /// Returns whether the string contains `text`, ignoring the case of ASCII letters.
    func containsText(_ text: String) -> Bool {
        Array(utf8).containsWord(lowercased: Array(text.lowercased().utf8))
    }
}

extension [UInt8] {
    /// Returns whether the bytes contain the lower-case `word`, ignoring the case of ASCII letters.
    func containsWord(lowercased word: [UInt8]) -> Bool {
        guard let first = word.first else { return true }
        guard count >= word.count else { return false }
        for start in 0...(count - word.count) where self[start].lowercased == first {
            var length = 1
            while length < word.count, self[start + length].lowercased == word[length] { length += 1 }
            if length == word.count { return true }
        }
        return false
    }
}

extension SetCookie {
    /// Returns the names of the cookies that a response sets and does not remove. There is no clock here: an expiry
    /// before the year 2000, as servers write it, is a removal.
    static func namesSet(by fields: HTTPFields) -> Set<String> {
        let past: Int64 = 946_684_800_000
        var names: Set<String> = []
        for value in fields.bytes(of: .setCookie) {
            guard let cookie = SetCookie(value, now: past), !cookie.value.isEmpty,
                cookie.expiresAt.map({ $0 > past }) ?? true
            else { continue }
            names.insert(cookie.name.text)
        }
        return names
    }
}

/// Condition on a value in the JSON body of a response.
public struct JSONMatcher: Sendable, Hashable {
    /// Location of the value.
    public var pointer: JSONPointer
    /// Text that the value contains, ignoring case; a number, `true` or `false` is this text. Nil: any value but `null`.
    public var text: String?

    /// Creates a condition.
    public init(pointer: JSONPointer, text: String? = nil) {
        self.pointer = pointer
        self.text = text
    }

    /// Returns whether `json` meets the condition.
    func matches(_ json: JSONValue) -> Bool {
        guard let value = pointer.value(in: json), value != .null else { return false }
        guard let text else { return true }
        switch value {
        case .string(let found): return found.containsText(text)
        case .bool, .integer, .double: return String(decoding: value.serialized(), as: UTF8.self) == text
        case .array, .object, .null: return false
        }
    }
}

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
