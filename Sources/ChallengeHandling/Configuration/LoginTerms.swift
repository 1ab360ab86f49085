// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The settings that change what a login means, as one text: the same text, the same meaning.
///
/// One line for each term, `key=value`, the key as in the configuration. What is not configured has no line, so a key that a later
/// version adds changes nothing for those who do not use it. In keys and values a backslash, a line end and (in keys) an equals sign
/// are escaped: two different lists never have the same text. A change of the list for what is configured already ends every kept
/// session and parts the hosts of a fleet, so it is a new `version`.
package struct LoginTerms {
    /// The version of the list.
    package static let version = 1

    /// The terms so far.
    package private(set) var text = ""

    /// No terms.
    package init() {}

    /// Adds a term; nothing without a value.
    package mutating func add(_ key: String, _ value: String?) {
        guard let value else { return }
        text += "\(Self.escaped(key, isKey: true))=\(Self.escaped(value))\n"
    }

    /// Adds a term for each value, in their order.
    package mutating func add(_ key: String, _ values: [String]) {
        for value in values { add(key, value) }
    }

    /// Adds a term for each named value, in their order.
    package mutating func add(_ key: String, _ members: [(name: String, value: String)]) {
        for member in members { add("\(key).\(member.name)", member.value) }
    }

    /// Adds the terms of a JSON value: numbers and flags as they are, texts in quotes, members by their names in order.
    package mutating func add(_ key: String, json value: JSONValue) {
        switch value {
        case .array(let elements):
            if elements.isEmpty { add(key, "[]") }
            for (index, element) in elements.enumerated() { add("\(key)[\(index)]", json: element) }
        case .object(let members):
            if members.isEmpty { add(key, "{}") }
            for (name, member) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                // In quotes, as a name may hold a dot or a bracket.
                add("\(key).\(Self.quoted(name))", json: member)
            }
        case .bool(let flag): add(key, flag ? "true" : "false")
        case .double(let number): add(key, "\(number)")
        case .integer(let number): add(key, "\(number)")
        case .null: add(key, "null")
        case .string(let text): add(key, Self.quoted(text))
        }
    }

    private static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    private static func escaped(_ text: String, isKey: Bool = false) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "=" where isKey: escaped += "\\="
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
