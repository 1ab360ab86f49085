// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// Location of a value in a server's responses during a login: `cookie:csrftoken`, `page:/regular expression/`.
public enum ValueSource: Sendable, Hashable {
    /// The cookie of that name, as it would be sent next.
    case cookie(String)
    /// The same with its percent-encoded characters decoded, as scripts of pages read it.
    case decodedCookie(String)
    /// The field of that name in the last response.
    case header(HTTPField.Name)
    /// The value in the JSON body of the last response.
    case json(JSONPointer)
    /// The group of the pattern in the body of the last response.
    case page(PagePattern)

    /// Parses a source. Nil if `text` begins with no kind of source.
    init?(parsing text: some StringProtocol) throws(TemplateError) {
        guard let colon = text.firstIndex(of: ":") else { return nil }
        let (kind, rest) = (text[..<colon], String(text[text.index(after: colon)...]))
        switch kind {
        case "cookie": self = .cookie(try Self.cookieName(rest))
        case "decoded-cookie": self = .decodedCookie(try Self.cookieName(rest))
        case "header":
            guard let name = HTTPField.Name(rest) else {
                throw .malformed(reason: "header: is followed by the name of a field, as in header:X-Session-Id.")
            }
            self = .header(name)
        case "json":
            guard let pointer = JSONPointer(rest) else {
                throw .malformed(reason: "json: is followed by a JSON pointer (RFC 6901), as in json:/data/token.")
            }
            self = .json(pointer)
        case "page":
            guard rest.count >= 2, rest.hasPrefix("/"), rest.hasSuffix("/") else {
                throw .malformed(reason: "page: is followed by a regular expression between slashes.")
            }
            do {
                self = .page(try PagePattern(String(rest.dropFirst().dropLast())))
            } catch {
                throw .malformed(reason: "The regular expression \(rest) \(error.reason).")
            }
        default: return nil
        }
    }

    private static func cookieName(_ text: String) throws(TemplateError) -> String {
        // A cookie's name is a token, like a field's (RFC 6265 §4.1.1).
        guard HTTPField.Name(text) != nil else {
            throw .malformed(reason: "cookie: is followed by the name of a cookie, as in cookie:csrftoken.")
        }
        return text
    }

    /// True if the value comes from the session's cookies, and changes with them.
    var isCookie: Bool {
        switch self {
        case .cookie, .decodedCookie: true
        case .header, .json, .page: false
        }
    }

    /// The source as written in `extract`, where a JSON pointer has no prefix.
    var term: String { if case .json(let pointer) = self { pointer.source } else { text } }

    /// The source as it is written in a template, without braces.
    var text: String {
        switch self {
        case .cookie(let name): "cookie:\(name)"
        case .decodedCookie(let name): "decoded-cookie:\(name)"
        case .header(let name): "header:\(name.rawName)"
        case .json(let pointer): "json:\(pointer.source)"
        case .page(let pattern): "page:/\(pattern.source)/"
        }
    }
}
