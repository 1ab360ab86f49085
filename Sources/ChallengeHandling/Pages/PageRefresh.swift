// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import FieldBytes
internal import HTTPTypes

/// A redirect that browsers follow without a status: the field `Refresh`, or `<meta http-equiv="refresh">`.
///
/// Jenkins, for instance, answers 403 with such a page that leads to its login page.
package struct PageRefresh: Sendable, Equatable {
    /// The longest delay in seconds. Pages with longer ones renew themselves, or end an idle session.
    static let longestDelay = 10

    /// The address that it leads to.
    package let target: WebURL
    /// True if the field said so, which no page can have.
    package let isOfField: Bool

    /// Finds the refresh of a response that leads elsewhere. `nil` without one, and for a long delay.
    package init?(of response: ExaminedResponse) {
        // A browser looks at the page of no redirect.
        guard !(300...399).contains(response.status) else { return nil }
        if let field = response.fields.bytes(of: HTTPField.Name(literal: "Refresh")).first {
            guard let target = Self.target(in: field, at: response.url) else { return nil }
            (self.target, isOfField) = (target, true)
        } else {
            guard let body = response.body, let target = Self.target(onPage: body, at: response.url) else { return nil }
            (self.target, isOfField) = (target, false)
        }
        guard target.path != response.url.path else { return nil }
    }

    private static func target(onPage body: [UInt8], at url: WebURL) -> WebURL? {
        // Most pages have none, and need no scan.
        let start = Array(body.prefix(ExaminedResponse.bodyLimit))
        guard start.containsWord(lowercased: Array("http-equiv".utf8)) else { return nil }
        var scanner = HTMLScanner(start)
        var base: WebURL?
        var isWithoutScripts = false
        while let token = scanner.next() {
            guard case .tag(let tag) = token else { continue }
            // Browsers with scripts do not look there.
            if tag.name == .noscript { isWithoutScripts = !tag.isEnd }
            switch tag.name.element {
            case .base where base == nil: base = scanner.attributes(of: tag)["href"].flatMap(url.resolving)
            case .meta where !isWithoutScripts:
                let attributes = scanner.attributes(of: tag)
                guard attributes.word("http-equiv") == "refresh" else { continue }
                return attributes.bytes("content").flatMap { target(in: $0, at: base ?? url) }
            default: continue
            }
        }
        return nil
    }

    /// Parses `1; url=/login` (WHATWG HTML §4.2.5.3, shared declarative refresh steps).
    private static func target(in value: [UInt8], at base: WebURL) -> WebURL? {
        var rest = value[...].drop(while: \.isASCIIWhitespace)
        let digits = rest.prefix(while: \.isDigit)
        rest = rest.dropFirst(digits.count)
        guard !digits.isEmpty || rest.first == UInt8(ascii: "."), digits.count <= 9,
            Int(String(decoding: digits, as: UTF8.self)) ?? 0 <= longestDelay
        else { return nil }
        rest = rest.drop { $0.isDigit || $0 == UInt8(ascii: ".") }
        guard let sign = rest.first, sign.isASCIIWhitespace || ";,".utf8.contains(sign) else { return nil }
        rest = rest.drop(while: \.isASCIIWhitespace)
        if let sign = rest.first, ";,".utf8.contains(sign) { rest = rest.dropFirst() }
        rest = rest.drop(while: \.isASCIIWhitespace)
        if rest.prefix(3).map(\.lowercased).elementsEqual("url".utf8) {
            let after = rest.dropFirst(3).drop(while: \.isASCIIWhitespace)
            if after.first == UInt8(ascii: "=") { rest = after.dropFirst().drop(while: \.isASCIIWhitespace) }
        }
        if let quote = rest.first, "\"'".utf8.contains(quote) { rest = rest.dropFirst().prefix { $0 != quote } }
        guard !rest.isEmpty else { return nil }
        return try? WebURL(reading: rest, at: base)
    }
}
