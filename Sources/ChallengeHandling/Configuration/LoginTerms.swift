// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The settings that change the meaning of a login, as one text. Equal texts mean equal logins.
///
/// Each term is one line, `key=value`, with the key of the configuration. A setting that is not configured has no line, so a new
/// key of a later version changes nothing for configurations without it. Backslashes, line ends and (in keys) equals signs are
/// escaped, so different lists never have the same text. A change of existing terms ends every kept session and separates nodes
/// that share sessions, so it needs a new `version`.
package struct LoginTerms {
    /// Version of the list of terms.
    package static let version = 1

    /// Terms so far.
    package private(set) var text = ""

    /// Creates an empty list.
    package init() {}

    /// Adds a term if it has a value.
    package mutating func add(_ key: String, _ value: String?) {
        guard let value else { return }
        text += "\(Self.escaped(key, isKey: true))=\(Self.escaped(value))\n"
    }

    /// Adds a term for each value, in order.
    package mutating func add(_ key: String, _ values: [String]) {
        for value in values { add(key, value) }
    }

    /// Adds a term for each named value, in order.
    package mutating func add(_ key: String, _ members: [(name: String, value: String)]) {
        for member in members { add("\(key).\(member.name)", member.value) }
    }

    /// Adds the terms of a JSON value: numbers and flags as they are, strings in quotes, members sorted by name.
    package mutating func add(_ key: String, json value: JSONValue) {
        switch value {
        case .array(let elements):
            if elements.isEmpty { add(key, "[]") }
            for (index, element) in elements.enumerated() { add("\(key)[\(index)]", json: element) }
        case .object(let members):
            if members.isEmpty { add(key, "{}") }
            for (name, member) in members.sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
                // Quoted, because a name may contain a dot or a bracket.
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
