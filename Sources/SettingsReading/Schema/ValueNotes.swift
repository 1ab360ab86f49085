// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Notes about one value for the effective configuration: its table, defaults, and text.
final class ValueNotes {
    private enum Step: Hashable {
        case key(String)
        case index(Int)
    }

    /// Table of the value, if it is a mapping with keys of the format.
    var section: KeySection?
    /// Defaults of absent keys.
    var standards: [String: YAMLNode] = [:]
    /// Long form of a value that is written in short form.
    var longhand: YAMLNode?
    /// Text with `${NAME}` replaced, if it differs from the written text.
    var text: String?
    private var children: [Step: ValueNotes] = [:]

    /// Returns the notes about the value of `key`.
    func child(_ key: String) -> ValueNotes { child(.key(key)) }

    /// Returns the notes about the element at `index`.
    func child(at index: Int) -> ValueNotes { child(.index(index)) }

    private func child(_ step: Step) -> ValueNotes {
        if let known = children[step] { return known }
        let made = ValueNotes()
        children[step] = made
        return made
    }
}

extension YAMLNode {
    /// Returns the value with every default, and keys in the order of their tables.
    func effective(_ notes: ValueNotes) -> YAMLNode {
        var node = notes.longhand ?? self
        switch node.content {
        case .scalar(_, let isPlain):
            if let text = notes.text { node.content = .scalar(text.replacingVariableSigns, isPlain: isPlain) }
        case .sequence(let elements):
            node.content = .sequence(elements.enumerated().map { $1.effective(notes.child(at: $0)) })
        case .mapping(let entries, let isFlow):
            guard let section = notes.section else {
                let named = entries.map { entry in
                    Entry(
                        key: entry.key, keyMark: entry.keyMark,
                        value: entry.value.effective(notes.child(entry.key)))
                }
                node.content = .mapping(named, isFlow: isFlow)
                break
            }
            var known: [Entry] = []
            for name in section.names {
                let written = entries.first { $0.key == name && !$0.value.isNull }
                guard let value = written?.value ?? notes.standards[name] else { continue }
                let effective = value.effective(notes.child(name))
                if written == nil, effective.content.isEmptyMapping { continue }
                known.append(Entry(key: name, keyMark: value.mark, value: effective))
            }
            node.content = .mapping(known, isFlow: false)
        }
        return node
    }
}

extension String {
    /// Text in which `${` is escaped, so that it is not read as a variable.
    fileprivate var replacingVariableSigns: String {
        var result = ""
        var rest = self[...]
        while let dollar = rest.firstIndex(of: "$") {
            result += rest[..<dollar]
            rest = rest[dollar...]
            result += rest.hasPrefix("${") ? "$$" : "$"
            rest = rest.dropFirst()
        }
        return result + rest
    }
}
