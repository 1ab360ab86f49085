// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The responses that a detector is to be shown, told by status and media type alone.
///
/// Most responses are no challenge, and to make field values of each of them costs more than to forward it. So a detector names what it
/// could never pass by; 401, 403 and 409 are shown to all.
public struct ResponseFilter: Sendable, Hashable {
    /// 401, 403 and 409 only.
    public static let statusesOfChallenges = ResponseFilter(rules: [])
    /// Every response; a page's body, too.
    public static let everything = ResponseFilter(rules: [Rule(readsBody: true)])

    /// One kind of response; every condition holds.
    struct Rule: Sendable, Hashable {
        /// Any of these; `nil` is every status.
        var statuses: [Int]?
        /// Any of these, in lower case; `nil` is every one, and none.
        var mediaTypes: [[UInt8]]?
        var readsBody: Bool
    }

    private(set) var rules: [Rule]

    private init(rules: [Rule]) {
        self.rules = rules
    }

    /// A filter for whatever any of `matchers` could match.
    public init(_ matchers: [ResponseMatcher]) {
        rules = matchers.map(Rule.init)
    }

    /// True if a detector may ask for the beginning of a body.
    public var readsBodies: Bool { rules.contains { $0.readsBody } }

    /// A filter for whatever either of the two admits.
    public func union(_ other: ResponseFilter) -> ResponseFilter {
        ResponseFilter(rules: rules + other.rules.filter { !rules.contains($0) })
    }

    /// True if a response is to be shown. `contentType`: the value of its one `Content-Type` field; empty where it has none. One with
    /// several is shown whatever they say (`admits(status:)`).
    public func admits(status: Int, contentType: Span<UInt8>) -> Bool {
        if Self.isChallenge(status) { return true }
        for rule in rules {
            if let statuses = rule.statuses, !statuses.contains(status) { continue }
            guard let types = rule.mediaTypes else { return true }
            for type in types where Self.names(type, contentType) { return true }
        }
        return false
    }

    /// True if a response of that status is to be shown, of whatever media type.
    public func admits(status: Int) -> Bool {
        Self.isChallenge(status) || rules.contains { $0.statuses?.contains(status) ?? true }
    }

    private static func isChallenge(_ status: Int) -> Bool { status == 401 || status == 403 || status == 409 }

    /// True if `value` names the media type `type`: without parameters, blanks and case (RFC 9110 §8.3.1).
    private static func names(_ type: [UInt8], _ value: Span<UInt8>) -> Bool {
        var matched = 0
        for index in value.indices {
            let byte = value[index]
            if byte == UInt8(ascii: ";") { break }
            if byte == 0x20 || byte == 0x09 { continue }
            let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            guard matched < type.count, type[matched] == (isCapital ? byte | 0x20 : byte) else { return false }
            matched += 1
        }
        return matched == type.count
    }
}

extension ResponseFilter.Rule {
    /// The status and type of whatever `matcher` could match; fields and body are not looked at.
    fileprivate init(_ matcher: ResponseMatcher) {
        let isRedirect = !matcher.redirectTo.isEmpty || matcher.redirectParameter != nil
        statuses = matcher.statuses.isEmpty ? (isRedirect ? Array(300...399) : nil) : matcher.statuses
        if !matcher.contentTypes.isEmpty {
            mediaTypes = matcher.contentTypes.map { Array($0.utf8) }
        } else if matcher.looksAtBody {
            mediaTypes = ResponseMatcher.pageTypes.map { Array($0.utf8) }
        }
        readsBody = matcher.looksAtBody
    }
}
