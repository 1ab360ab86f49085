// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// A value of the file while it is read. Readers report problems and return nil.
package struct Value {
    /// Value as it is written.
    package let node: YAMLNode
    /// Key path: `upstreams.bank.url`, `listeners[0].users[1]`.
    package let path: String
    /// Position of the key, or of the value itself in a list.
    package let keyMark: Mark
    /// Reading that problems are reported to.
    package let reading: Reading
    /// Notes for the effective configuration.
    let notes: ValueNotes

    /// Creates the value of the whole file.
    package init(root: YAMLNode, reading: Reading) {
        self.init(node: root, path: "", keyMark: root.mark, reading: reading, notes: ValueNotes())
        reading.record(root.mark, at: "")
    }

    private init(node: YAMLNode, path: String, keyMark: Mark, reading: Reading, notes: ValueNotes) {
        self.node = node
        self.path = path
        self.keyMark = keyMark
        self.reading = reading
        self.notes = notes
    }

    /// Returns the value of a key.
    func child(_ entry: YAMLNode.Entry) -> Value {
        let child = Value(
            node: entry.value, path: path(to: entry.key), keyMark: entry.keyMark, reading: reading,
            notes: notes.child(entry.key))
        reading.record(entry.value.isNull ? entry.keyMark : entry.value.mark, at: child.path)
        return child
    }

    /// Returns the default of the absent `key`. Its problems are reported at this mapping.
    func standard(_ node: YAMLNode, for key: String) -> Value {
        var node = node
        node.mark = keyMark
        notes.standards[key] = node
        return Value(node: node, path: path(to: key), keyMark: keyMark, reading: reading, notes: notes.child(key))
    }

    /// Returns the long form of this value: a mapping with the value under `key`.
    package func longhand(_ key: String) -> Value {
        let entry = YAMLNode.Entry(key: key, keyMark: keyMark, value: node)
        let mapping = YAMLNode(content: .mapping([entry], isFlow: true), mark: node.mark)
        notes.longhand = mapping
        return Value(node: mapping, path: path, keyMark: keyMark, reading: reading, notes: notes)
    }

    /// Returns the key path of `key` below this value.
    func path(to key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    /// Value with every default filled in.
    package var effective: YAMLNode { node.effective(notes) }

    /// Reports a problem with this value.
    package func report(_ message: String, severity: Problem.Severity = .error) {
        reading.report(message, at: node.isNull ? keyMark : node.mark, keyPath: path, severity: severity)
    }

    /// Returns the text of a single value, with `${NAME}` replaced.
    ///
    /// If `isTemplate`, the effective configuration has the text as written, because variables in templates may contain
    /// anything.
    package func text(isTemplate: Bool = false) -> String? {
        guard case .scalar(let text, _) = node.content, !node.isNull else {
            report("must be a single value, but this is \(node.kind)")
            return nil
        }
        do {
            let expanded = try expanded(text, environment: reading.environment)
            if expanded != text, !isTemplate { notes.text = expanded }
            return expanded
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// Records the text for the effective configuration.
    package func record(text: String) { notes.text = text }

    /// Returns whether this is the single value `keyword`, with `${NAME}` replaced.
    ///
    /// Quotes make no difference here. They matter in `json()` only, where quoted numbers and flags are strings.
    package func isKeyword(_ keyword: String) -> Bool {
        textIfValid == keyword
    }

    /// Text of a single value with `${NAME}` replaced. Reports nothing if this is not a single value.
    package var textIfValid: String? {
        guard case .scalar(let text, _) = node.content else { return nil }
        return try? expanded(text, environment: reading.environment)
    }

    /// Returns a text that is not empty and has no control characters or line ends.
    package func word() -> String? {
        guard let text = text() else { return nil }
        guard !text.isEmpty else {
            report("is empty")
            return nil
        }
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
            report("contains a line end or a control character")
            return nil
        }
        return text
    }

    /// Returns the elements of a list.
    package func list() -> [Value]? {
        guard case .sequence(let nodes) = node.content else {
            report("must be a list, but this is \(node.kind)")
            return nil
        }
        return nodes.enumerated().map { index, node in
            let element = Value(
                node: node, path: "\(path)[\(index)]", keyMark: node.mark, reading: reading,
                notes: notes.child(at: index))
            reading.record(node.mark, at: element.path)
            return element
        }
    }

    /// Returns the elements of a list, or the value itself as the only element.
    package func listOrOne() -> [Value] {
        if case .sequence = node.content { list() ?? [] } else { [self] }
    }

    /// Returns the entries of a mapping whose keys are names that the user chose.
    package func members() -> [(name: String, value: Value)]? {
        guard case .mapping(let entries, _) = node.content else {
            report("must be a mapping of names, but this is \(node.kind)")
            return nil
        }
        return entries.map { ($0.key, child($0)) }
    }

    /// Returns the value of `key`; nil if the key is absent or this is not a mapping.
    package func member(_ key: String) -> Value? {
        guard case .mapping(let entries, _) = node.content, let entry = entries.first(where: { $0.key == key }) else {
            return nil
        }
        return child(entry)
    }

    /// Returns the entries of a mapping with the keys of `section`. Unknown keys are reported.
    package func fields(of section: KeySection) -> Fields? {
        guard case .mapping(let entries, _) = node.content else {
            report("must be a mapping, but this is \(node.kind)")
            return nil
        }
        notes.section = section
        return Fields(self, entries, section)
    }

    /// True if this is a single value, not a list or a mapping.
    package var isScalar: Bool {
        if case .scalar = node.content { true } else { false }
    }

    /// True if this is a mapping.
    package var isMapping: Bool {
        if case .mapping = node.content { true } else { false }
    }
}

/// Problem with a `${NAME}`.
struct EnvironmentError: Error {
    var reason: String
}

/// Returns `text` with each `${NAME}` replaced from `environment`. `$${` becomes `${`.
func expanded(_ text: String, environment: [String: String]) throws(EnvironmentError) -> String {
    guard text.contains("$") else { return text }
    var output = ""
    var rest = text[...]
    while let dollar = rest.firstIndex(of: "$") {
        output += rest[..<dollar]
        rest = rest[dollar...]
        if rest.hasPrefix("$${") {
            output += "${"
            rest = rest.dropFirst(3)
        } else if rest.hasPrefix("${") {
            guard let end = rest.firstIndex(of: "}") else {
                throw EnvironmentError(reason: "${ has no closing }; write $${ for a literal ${")
            }
            let name = String(rest[..<end].dropFirst(2))
            guard isVariableName(name) else {
                throw EnvironmentError(
                    reason:
                        "\"\(name)\" is not the name of an environment variable; write $${ for a literal ${"
                )
            }
            guard let value = environment[name] else {
                throw EnvironmentError(
                    reason: "the environment variable \(name) is not set"
                        + (name == "CREDENTIALS_DIRECTORY"
                            ? "; the unit sets it if it has LoadCredential=. Outside the unit, set it to the directory of such files"
                            : ""))
            }
            output += value
            rest = rest[end...].dropFirst()
        } else {
            output += "$"
            rest = rest.dropFirst()
        }
    }
    return output + rest
}

/// Returns whether a name is POSIX: letters, digits and underscores, not beginning with a digit.
private func isVariableName(_ name: String) -> Bool {
    guard let first = name.utf8.first, !first.isDigit else { return false }
    return name.utf8.allSatisfy { $0.isAlphanumeric || $0 == UInt8(ascii: "_") }
}
