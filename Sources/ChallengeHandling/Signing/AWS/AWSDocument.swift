// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Texts of the small XML documents with which services answer.
///
/// This is not a parser of XML: it finds the first element of a name with only text as content. These answers need no
/// more, and all other content is ignored.
enum AWSDocument {
    /// Maximum number of bytes of a document that is searched.
    static let limit = 64 * 1024

    /// Returns the text of the first element of that name; nil if missing, or if it contains other elements.
    static func text(of name: String, in document: [UInt8]) -> String? {
        let document = document.prefix(limit)
        let opening = Array("<\(name)>".utf8)
        let closing = Array("</\(name)>".utf8)
        guard let start = document.firstRange(of: opening)?.upperBound,
            let end = document[start...].firstIndex(of: UInt8(ascii: "<")), document[end...].starts(with: closing)
        else { return nil }
        return String(validating: document[start..<end], as: UTF8.self).flatMap(decoded)
    }

    /// Returns `text` with the five named entities of XML decoded (XML 1.0 §4.6); nil if there are others.
    private static func decoded(_ text: String) -> String? {
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var result = ""
        var rest = Substring(text)
        while let mark = rest.firstIndex(of: "&") {
            result += rest[..<mark]
            rest = rest[mark...]
            guard let entity = entities.first(where: { rest.hasPrefix($0.name) }) else { return nil }
            result += entity.text
            rest = rest.dropFirst(entity.name.count)
        }
        return result + rest
    }

    private static let entities = [
        (name: "&amp;", text: "&"), (name: "&lt;", text: "<"), (name: "&gt;", text: ">"), (name: "&quot;", text: "\""),
        (name: "&apos;", text: "'"),
    ]
}
