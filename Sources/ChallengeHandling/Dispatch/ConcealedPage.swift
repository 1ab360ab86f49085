// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPTypes

/// A page behind an answer that does not show it, or not whole.
///
/// A server may apply `Range` and preconditions to its login page, too, and answers HEAD with the page's fields.
enum ConcealedPage: Sendable, Equatable {
    /// Status and fields are the page's: the answer to HEAD (RFC 9110 §9.3.2).
    case body
    /// The fields are the page's: 206 (RFC 9110 §15.3.7).
    case parts
    /// Nothing of the page shows: 304, 412 or 416 (RFC 9110 §13.2, §15.5.17). Without the condition it would be a 2xx.
    case everything

    /// Finds the kind of page that `response` conceals; `nil` if it shows everything or is no page of its address.
    init?(_ response: ExaminedResponse) {
        guard response.method.isRetrieval else { return nil }
        switch response.status {
        case 206: self = .parts
        case 304, 412, 416: self = .everything
        case 204, 205, 300...399: return nil
        case let status where response.method != .head || InconclusiveStatus.contains(status): return nil
        default: self = .body
        }
    }

    /// Returns true if the page may have one of these media types, in lower case.
    func mayHaveType(of types: [String], in response: ExaminedResponse) -> Bool {
        guard self != .everything, let type = response.mediaType else { return true }
        // The parts have types of their own (RFC 9110 §14.6).
        return types.contains(type) || self == .parts && type == "multipart/byteranges"
    }
}

extension ExaminedResponse {
    /// The media type in lower case, without parameters; `nil` without `Content-Type`.
    var mediaType: String? { fields[.contentType].map { MediaType($0).essence } }
}

extension ResponseInspection {
    /// Returns true if a page that one of `matchers` matches may be behind the response, which does not show it.
    func mayConceal(_ matchers: [ResponseMatcher]) -> Bool {
        guard let page = ConcealedPage(response) else { return false }
        return matchers.contains { matcher in
            guard matcher.redirectTo.isEmpty, matcher.redirectParameter == nil else { return false }
            switch page {
            case .body: return matcher.needsBody && matchesHead(matcher) && mayHaveType(matcher, page)
            case .parts: return hasPage(matcher) && matchesFields(matcher) && mayHaveType(matcher, page)
            case .everything: return hasPage(matcher)
            }
        }
    }

    /// Returns true if `matcher` accepts a status whose page can have parts and preconditions.
    private func hasPage(_ matcher: ResponseMatcher) -> Bool {
        matcher.statuses.isEmpty || matcher.statuses.contains { (200...299).contains($0) }
    }

    private func mayHaveType(_ matcher: ResponseMatcher, _ page: ConcealedPage) -> Bool {
        if !matcher.contentTypes.isEmpty { return page.mayHaveType(of: matcher.contentTypes, in: response) }
        return !matcher.needsBody || page.mayHaveType(of: matcher.searchedTypes, in: response)
    }
}
