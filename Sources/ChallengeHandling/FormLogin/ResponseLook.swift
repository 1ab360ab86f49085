// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes
internal import Secrets

/// One response under the eyes of matchers; its page is read once, when the first of them asks for its forms.
struct ResponseLook {
    /// What a matcher makes of a response.
    enum Match {
        case matches, doesNot
        /// By its head it may; the body decides.
        case needsBody
    }

    let response: ExaminedResponse
    private let isOfAnyType: Bool
    private var page: HTMLPage?

    /// A response to be looked at. `ofAnyType`: texts are looked for in any body, not only in those that can be a page.
    init(_ response: ExaminedResponse, ofAnyType: Bool = false) {
        self.response = response
        isOfAnyType = ofAnyType
    }

    /// Whether all signs of `matcher` are there.
    mutating func match(_ matcher: ResponseMatcher) -> Match {
        guard matchesHead(matcher) else { return .doesNot }
        guard matcher.looksAtBody else { return .matches }
        guard mayBePage(matcher.contentTypes) else { return .doesNot }
        guard let body = response.body else { return .needsBody }
        guard matcher.bodyContains.allSatisfy({ body.containsWord(lowercased: Array($0.lowercased().utf8)) }) else {
            return .doesNot
        }
        guard matcher.formAction != nil || !matcher.formFields.isEmpty else { return .matches }
        return form(matcher, in: body) ? .matches : .doesNot
    }

    /// Whether any of `matchers` matches; `needsBody` where none does by the head alone but one may.
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

    private func matchesHead(_ matcher: ResponseMatcher) -> Bool {
        if !matcher.statuses.isEmpty, !matcher.statuses.contains(response.status) { return false }
        if !matcher.contentTypes.isEmpty, !matcher.contentTypes.contains(mediaType ?? "") { return false }
        for field in matcher.fields {
            let values = response.fields[values: field.name]
            guard values.contains(where: { value in field.contains.map { value.containsText($0) } ?? true }) else {
                return false
            }
        }
        if !matcher.cookies.isEmpty {
            let set = SetCookie.namesSet(by: response.fields)
            guard matcher.cookies.allSatisfy(set.contains) else { return false }
        }
        guard !matcher.redirectTo.isEmpty || matcher.redirectParameter != nil else { return true }
        guard (300...399).contains(response.status), let location = response.fields[.location] else { return false }
        guard matcher.redirectTo.allSatisfy(location.containsText) else { return false }
        guard let parameter = matcher.redirectParameter else { return true }
        let query = location.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst().prefix { $0 != UInt8(ascii: "#") }
        return FormEncoding.value(of: parameter.name, in: Substring(query)) == parameter.value
    }

    /// Whether the body can be a page that a login stands on: of such a type, and whole (RFC 9110 sections 9.3.2, 15.3.5,
    /// 15.3.7, 15.4.5).
    private func mayBePage(_ listed: [String]) -> Bool {
        guard response.method != .head, ![204, 205, 206, 304].contains(response.status) else { return false }
        // Listed ones have matched already.
        return isOfAnyType || !listed.isEmpty || mediaType.map(ResponseMatcher.pageTypes.contains) == true
    }

    private var mediaType: String? {
        response.fields[.contentType].map { type in
            // No type is as long as that (RFC 6838 §4.2).
            let name = type.utf8.prefix(256).prefix { $0 != UInt8(ascii: ";") }.filter { $0 != 0x20 && $0 != 0x09 }
            return String(decoding: name, as: UTF8.self).lowercased()
        }
    }

    private mutating func form(_ matcher: ResponseMatcher, in body: [UInt8]) -> Bool {
        let page = page ?? HTMLPage(parsing: body)
        self.page = page
        let ending = matcher.formAction?.lowercased()
        return page.forms.contains { form in
            (ending.map { form.actionPath.lowercased().hasSuffix($0) } ?? true)
                && matcher.formFields.allSatisfy(form.hasInput)
        }
    }
}

extension String {
    /// Whether `text` stands in it, without regard to the case of ASCII letters.
    fileprivate func containsText(_ text: String) -> Bool {
        Array(utf8).containsWord(lowercased: Array(text.lowercased().utf8))
    }
}

extension [UInt8] {
    /// Whether `word`, which is in lower case, stands in it, without regard to the case of ASCII letters.
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

extension UInt8 {
    fileprivate var lowercased: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }
}

extension SetCookie {
    /// The names of the cookies that a response sets, less those that it removes. There is no clock here: an end before the
    /// year 2000 is a removal, which is what servers write.
    static func namesSet(by fields: HTTPFields) -> Set<String> {
        let past: Int64 = 946_684_800_000
        var names: Set<String> = []
        for value in fields[values: .setCookie] {
            guard let cookie = SetCookie(value, now: past), !cookie.value.isEmpty,
                cookie.expiresAt.map({ $0 > past }) ?? true
            else { continue }
            names.insert(cookie.name)
        }
        return names
    }
}
