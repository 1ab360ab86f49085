// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Responses that a detector must examine, selected by status and media type.
///
/// Most responses are not challenges, and converting the field values of each would cost more than forwarding it. So a
/// detector names the responses that it might need; 401, 403 and 409 are examined by all.
public struct ResponseFilter: Sendable, Hashable {
    /// Filter for 401, 403 and 409 only.
    public static let statusesOfChallenges = ResponseFilter(rules: [])
    /// Filter for every response, including bodies.
    public static let everything = ResponseFilter(rules: [Rule(readsBody: true)])

    /// Condition on a response, all parts of which must hold.
    struct Rule: Sendable, Hashable {
        /// Accepted statuses; nil accepts every status.
        var statuses: [Int]?
        /// Accepted media types in lower case; nil accepts every type, and a response without one.
        var mediaTypes: [[UInt8]]?
        var readsBody: Bool
    }

    private(set) var rules: [Rule]

    private init(rules: [Rule]) {
        self.rules = rules
    }

    /// Creates a filter for everything that any of `matchers` could match.
    public init(_ matchers: [ResponseMatcher]) {
        rules = matchers.map(Rule.init)
    }

    /// True if a detector may need the beginning of a body.
    public var readsBodies: Bool { rules.contains { $0.readsBody } }

    /// Returns a filter for everything that either filter admits.
    public func union(_ other: ResponseFilter) -> ResponseFilter {
        ResponseFilter(rules: rules + other.rules.filter { !rules.contains($0) })
    }

    /// Returns true if a response must be examined.
    ///
    /// `contentType` is the value of its single `Content-Type` field, or empty. A response with several is examined by
    /// `admits(status:)` alone.
    public func admits(status: Int, contentType: Span<UInt8>) -> Bool {
        if Self.isChallenge(status) { return true }
        for rule in rules {
            if let statuses = rule.statuses, !statuses.contains(status) { continue }
            guard let types = rule.mediaTypes else { return true }
            for type in types where Self.names(type, contentType) { return true }
        }
        return false
    }

    /// Returns true if a response of that status must be examined, whatever its media type.
    public func admits(status: Int) -> Bool {
        Self.isChallenge(status) || rules.contains { $0.statuses?.contains(status) ?? true }
    }

    private static func isChallenge(_ status: Int) -> Bool { status == 401 || status == 403 || status == 409 }

    /// Returns true if `value` names the media type `type`, ignoring parameters, blanks and case (RFC 9110 §8.3.1).
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
    /// Creates the rule for everything that `matcher` could match by status and media type.
    fileprivate init(_ matcher: ResponseMatcher) {
        let isRedirect = !matcher.redirectTo.isEmpty || matcher.redirectParameter != nil
        statuses = matcher.statuses.isEmpty ? (isRedirect ? Array(300...399) : nil) : matcher.statuses
        if !matcher.contentTypes.isEmpty {
            mediaTypes = matcher.contentTypes.map { Array($0.utf8) }
        } else if matcher.needsBody {
            mediaTypes = matcher.searchedTypes.map { Array($0.utf8) }
        }
        readsBody = matcher.needsBody
    }
}
