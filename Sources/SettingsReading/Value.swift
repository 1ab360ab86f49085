// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A value of the file on the way to its type: whatever is wrong with it is reported, and then it is `nil`.
package struct Value {
    /// It, as it is written.
    package let node: YAMLNode
    /// The way to it, for people: `upstreams.bank.url`, `listeners[0].users[1]`.
    package let path: String
    /// The place of its key, or of the value itself in a list.
    package let keyMark: Mark
    /// The reading that problems are reported to.
    package let reading: Reading

    /// The whole file.
    package init(root: YAMLNode, reading: Reading) {
        self.init(node: root, path: "", keyMark: root.mark, reading: reading)
    }

    private init(node: YAMLNode, path: String, keyMark: Mark, reading: Reading) {
        self.node = node
        self.path = path
        self.keyMark = keyMark
        self.reading = reading
        reading.note(node.isNull ? keyMark : node.mark, at: path)
    }

    /// The value of a key that the format itself names.
    package func child(_ entry: YAMLNode.Entry) -> Value {
        Value(
            node: entry.value, path: path.isEmpty ? entry.key : "\(path).\(entry.key)",
            keyMark: entry.keyMark, reading: reading)
    }

    /// The value of a key that the user named.
    func named(_ entry: YAMLNode.Entry) -> Value {
        Value(
            node: entry.value, path: "\(path).\(entry.key)", keyMark: entry.keyMark,
            reading: reading)
    }

    /// Reports a problem here.
    package func report(_ message: String, severity: Problem.Severity = .error) {
        reading.report(message, at: node.isNull ? keyMark : node.mark, keyPath: path, severity: severity)
    }

    /// The text of a single value, `${NAME}` replaced.
    package func text() -> String? {
        guard case .scalar(let text, _) = node.content, !node.isNull else {
            report("must be a single value, but this is \(node.kind)")
            return nil
        }
        do {
            return try expanded(text, environment: reading.environment)
        } catch {
            report(error.reason)
            return nil
        }
    }

    /// True if this is the single value `keyword`, with or without quotes, `${NAME}` replaced.
    ///
    /// Quotes change no meaning, save that they make text of numbers and flags in `json()`.
    package func isKeyword(_ keyword: String) -> Bool {
        quietText == keyword
    }

    /// The text of a single value, `${NAME}` replaced, without a report where there is none.
    package var quietText: String? {
        guard case .scalar(let text, _) = node.content else { return nil }
        return try? expanded(text, environment: reading.environment)
    }

    /// Text that is not empty and has neither controls nor line ends.
    package func word() -> String? {
        guard let text = text() else { return nil }
        guard !text.isEmpty else {
            report("is empty")
            return nil
        }
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else {
            report("holds a line end or a control character")
            return nil
        }
        return text
    }

    /// The elements of a list.
    package func list() -> [Value]? {
        guard case .sequence(let nodes) = node.content else {
            report("must be a list, but this is \(node.kind)")
            return nil
        }
        return nodes.enumerated().map { index, node in
            Value(node: node, path: "\(path)[\(index)]", keyMark: node.mark, reading: reading)
        }
    }

    /// The elements of a list, or the value itself as the only one.
    package func listOrOne() -> [Value] {
        if case .sequence = node.content { list() ?? [] } else { [self] }
    }

    /// The entries of a mapping whose keys are the user's own names.
    package func members() -> [(name: String, value: Value)]? {
        guard case .mapping(let entries, _) = node.content else {
            report("must be a mapping of names, but this is \(node.kind)")
            return nil
        }
        return entries.map { ($0.key, named($0)) }
    }

    /// The entries of a mapping whose keys the format names.
    package func fields() -> Fields? {
        guard case .mapping(let entries, _) = node.content else {
            report("must be a mapping, but this is \(node.kind)")
            return nil
        }
        return Fields(self, entries)
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
