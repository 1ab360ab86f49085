// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Form of a value: its reader, its writer, and its description.
package struct ValueForm<Content>: Sendable {
    /// Allowed values, as the documentation writes them: `duration`, `1 to 64`.
    package var words: String
    /// Plural of `words`, for lists.
    package var plural: String
    /// Keywords that the format defines for the value.
    package var choices: [String]
    /// Table of the value, if it is a mapping with keys of the format.
    package var section: KeySection?
    /// Returns the content of a value; nil if the value has a problem, which is reported.
    package let read: @Sendable (Value) -> Content?
    /// Returns the value that is read as the given content.
    package let write: @Sendable (Content) -> YAMLNode

    /// Creates a form. Only keys with a default need `write`.
    package init(
        _ words: String, plural: String? = nil, choices: [String] = [], section: KeySection? = nil,
        write: @escaping @Sendable (Content) -> YAMLNode = { _ in .null }, read: @escaping @Sendable (Value) -> Content?
    ) {
        self.words = words
        self.plural = plural ?? "\(words)s"
        self.choices = choices
        self.section = section
        self.read = read
        self.write = write
    }

    /// Returns the form with another description.
    package func described(as words: String, plural: String? = nil) -> ValueForm {
        var form = self
        form.words = words
        if let plural { form.plural = plural }
        return form
    }
}

extension ValueForm {
    /// A mapping with the keys of `section`. An empty mapping means the defaults of its keys.
    package static func mapping(
        _ section: KeySection, _ read: @escaping @Sendable (Fields) -> Content?
    ) -> ValueForm {
        ValueForm("mapping", section: section, write: { _ in .emptyMapping }) { value in
            value.fields(of: section).flatMap(read)
        }
    }

    /// A mapping with the keys of `section`, whose fields are read later.
    package static func fields(of section: KeySection) -> ValueForm where Content == Fields {
        mapping(section) { $0 }
    }

    /// A list, or one element in its place. Elements with problems are left out.
    package static func list<Element>(of element: ValueForm<Element>) -> ValueForm where Content == [Element] {
        ValueForm(
            "list of \(element.plural)", choices: element.choices, section: element.section,
            write: { YAMLNode(list: $0.map(element.write)) },
            read: { value in value.listOrOne().compactMap(element.read) })
    }

    /// A list of at least one element. `fault` is reported for an empty list.
    package static func filledList<Element>(of element: ValueForm<Element>, else fault: String) -> ValueForm
    where Content == [Element] {
        ValueForm("list of \(element.plural)", choices: element.choices, section: element.section) { value in
            let elements = value.listOrOne()
            if elements.isEmpty { value.report(fault) }
            return elements.compactMap(element.read)
        }
    }
}
