// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A key of the configuration: its name, reader, default and description.
///
/// Each key is declared once, in the table of its section.
package struct Key<Content>: SchemaKey {
    /// Name.
    package let name: String
    /// Allowed values, as the documentation writes them.
    package let words: String
    /// Keywords that the format defines for the value.
    package let choices: [String]
    /// Table of the value, if it is a mapping with keys of the format.
    package let section: KeySection?
    /// Effect of leaving the key out.
    package let absence: KeyAbsence
    /// Description in one sentence.
    package let meaning: String
    /// Returns the content of a written value and reports its problems.
    let read: @Sendable (Value) -> Content
    /// Returns the content if the key is absent.
    let absent: @Sendable () -> Content

    /// Default.
    package var standard: Content { absent() }
}

/// A key of a table, independent of the type of its content.
package protocol SchemaKey: Sendable {
    /// Name.
    var name: String { get }
    /// Allowed values, as the documentation writes them.
    var words: String { get }
    /// Keywords that the format defines for the value.
    var choices: [String] { get }
    /// Table of the value, if it is a mapping with keys of the format.
    var section: KeySection? { get }
    /// Effect of leaving the key out.
    var absence: KeyAbsence { get }
    /// Description in one sentence.
    var meaning: String { get }
}

/// Effect of leaving a key out.
package enum KeyAbsence: Sendable {
    /// The file cannot be used.
    case required
    /// The effect of this value. The documentation writes `words` for it, if given.
    case standard(YAMLNode, words: String?)
    /// An effect without a value, in words: `none`, `the preset's`.
    case described(String)

    /// Default, as the documentation writes it.
    package var words: String {
        switch self {
        case .required: "required"
        case .standard(_, let words?): words
        case .standard(let node, nil): node.content.isEmptyMapping ? "" : "`\(node.flowText)`"
        case .described(let words): words
        }
    }
}

extension Key {
    /// Creates a required key. Its content is nil if the key is missing, which is reported.
    package init<Wrapped>(required name: String, _ form: ValueForm<Wrapped>, _ meaning: String)
    where Content == Wrapped? {
        self.init(
            name: name, words: form.words, choices: form.choices, section: form.section, absence: .required,
            meaning: meaning, read: form.read, absent: { nil })
    }

    /// Creates an optional key. `without` describes the effect of leaving it out.
    package init<Wrapped>(_ name: String, _ form: ValueForm<Wrapped>, without: String = "none", _ meaning: String)
    where Content == Wrapped? {
        self.init(
            name: name, words: form.words, choices: form.choices, section: form.section, absence: .described(without),
            meaning: meaning, read: form.read, absent: { nil })
    }

    /// Creates a key with a default, which `form` writes. The documentation writes `words` for it, if given.
    package init(
        _ name: String, _ form: ValueForm<Content>, default standard: Content, words: String? = nil, _ meaning: String
    ) where Content: Sendable {
        let read = form.read
        self.init(
            name: name, words: form.words, choices: form.choices, section: form.section,
            absence: .standard(form.write(standard), words: words), meaning: meaning,
            read: { read($0) ?? standard }, absent: { standard })
    }
}

/// Table of a mapping: all keys that the format has there.
package struct KeySection: Sendable {
    /// Key path of the mapping in the documentation: `upstreams.*.tls`. Empty for the whole file.
    package let name: String
    /// Keys in the order in which they are printed.
    package let keys: [any SchemaKey]
    /// Unique names of the keys.
    package let names: [String]

    /// Creates a table.
    package init(_ name: String, _ keys: [any SchemaKey]) {
        self.name = name
        self.keys = keys
        var seen: Set<String> = []
        names = keys.map(\.name).filter { seen.insert($0).inserted }
    }

    /// This section and all sections below, each once.
    package var all: [KeySection] {
        var found = [self]
        for key in keys {
            for section in key.section?.all ?? [] where !found.contains(where: { $0.isSame(as: section) }) {
                found.append(section)
            }
        }
        return found
    }

    private func isSame(as other: KeySection) -> Bool { name == other.name && names == other.names }
}
