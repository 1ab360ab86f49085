// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The complaint in a token endpoint's answer: an error code, and the texts beside it.
///
/// RFC 6749 §5.2 has `error` and `error_description`. Vendors also write an object or a list, `errors`, and other names.
struct TokenComplaint: Equatable {
    /// The error code in lower case, if it is valid.
    private(set) var word: String?
    /// Numbers of Microsoft Entra: its `error_codes`, and those in its texts. Others' numbers mean other things.
    private(set) var codes: [Int64] = []
    /// The texts in lower case, joined by spaces.
    private var text: [UInt8] = []

    /// Names of members with an error code, in the order in which they are looked for.
    private static let wordNames = ["error", "errors", "errorCode", "errorType", "code", "type", "status"]
    /// Names of members with a text.
    private static let textNames = [
        "error_description", "description", "message", "errorSummary", "error_message", "msg", "detail", "details",
        "title",
    ]
    /// The kept length of all texts, in bytes.
    private static let longestText = 1024
    private static let mostCodes = 16

    /// Creates a complaint that says nothing more.
    init() {}

    /// Reads the complaint in `body`; `nil` if there is none.
    init?(in body: JSONValue) {
        addMembers(of: body, depth: 0)
        if case .array(let values)? = body["error_codes"] { values.forEach { add(code: $0.integerValue) } }
        readEntraCodes()
        guard word != nil || !codes.isEmpty || !text.isEmpty else { return nil }
    }

    /// Returns whether `value` states an error. Some servers write an empty one beside a token.
    static func isStated(_ value: JSONValue) -> Bool {
        switch value {
        case .null, .bool(false), .string(""), .integer(0), .array([]), .object([:]): false
        default: true
        }
    }

    /// Returns whether the texts hold `phrase`, in lower case, as whole words.
    func says(_ phrase: String) -> Bool {
        let phrase = Array(phrase.utf8)
        var rest = text[...]
        while let found = rest.firstRange(of: phrase) {
            let isWhole =
                (found.lowerBound == 0 || !text[found.lowerBound - 1].isAlphanumeric)
                && (found.upperBound == text.endIndex || !text[found.upperBound].isAlphanumeric)
            if isWhole { return true }
            rest = text[(found.lowerBound + 1)...]
        }
        return false
    }

    private mutating func add(_ value: JSONValue, depth: Int) {
        switch value {
        case .string(let text) where word == nil && Self.isWord(text): word = text.lowercased()
        case .string(let text): add(text: text)
        case .array(let elements): if let first = elements.first, depth < 3 { add(first, depth: depth + 1) }
        case .object: if depth < 3 { addMembers(of: value, depth: depth + 1) }
        default: break
        }
    }

    private mutating func addMembers(of value: JSONValue, depth: Int) {
        for name in Self.wordNames { if let member = value[name] { add(member, depth: depth) } }
        for name in Self.textNames { if let text = value[name]?.stringValue { add(text: text) } }
    }

    private mutating func add(code: Int64?) {
        if let code, code != 0, codes.count < Self.mostCodes { codes.append(code) }
    }

    private mutating func add(text more: String) {
        guard !more.isEmpty else { return }
        if !text.isEmpty { text.append(UInt8(ascii: " ")) }
        let room = max(0, Self.longestText - text.count)
        text += more.utf8.prefix(room).map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
    }

    /// Reads the numbers of texts such as `AADSTS700024: Client assertion is not within its valid time range`.
    private mutating func readEntraCodes() {
        var rest = text[...]
        while let found = rest.firstRange(of: Array("aadsts".utf8)) {
            rest = text[found.upperBound...]
            add(code: Int64(String(decoding: rest.prefix { $0.isDigit }.prefix(12), as: UTF8.self)))
        }
    }

    private static func isWord(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isAlphanumeric || "_-.".utf8.contains($0) }
    }
}
