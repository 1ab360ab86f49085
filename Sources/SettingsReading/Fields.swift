// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Keys of one mapping, read by the table of its section.
package struct Fields {
    /// Mapping.
    package let value: Value
    private let entries: [YAMLNode.Entry]
    private let section: KeySection

    /// Reports every key that the section does not have.
    init(_ value: Value, _ entries: [YAMLNode.Entry], _ section: KeySection) {
        self.value = value
        self.entries = entries
        self.section = section
        for entry in entries where !section.names.contains(entry.key) {
            let advice =
                SecretNames.contains(entry.key)
                ? "; secrets do not belong in this file: keep it in a credential source, and name that credential with `credential:`"
                : didYouMean(entry.key, among: section.names)
            value.reading.report("unknown key\(advice)", at: entry.keyMark, keyPath: value.child(entry).path)
        }
    }

    /// The content of `key`: the written value, or the default.
    package subscript<Content>(key: Key<Content>) -> Content {
        if let written = written(key) { return key.read(written) }
        switch key.absence {
        case .required: reportMissing(key)
        case .standard(let node, _):
            let standard = value.standard(node, for: key.name)
            // An empty mapping is read for the defaults of its own keys.
            if node.content.isEmptyMapping { return key.read(standard) }
        case .described: break
        }
        return key.absent()
    }

    /// Returns the written value of `key`; nil if the key is absent or has no value.
    package func written(_ key: some SchemaKey) -> Value? {
        assert(section.names.contains(key.name), "\(key.name) is not a key of \(section.name)")
        value.reading.recordRead(of: key.name, in: section.name)
        return written(named: key.name)
    }

    /// Returns the written value of the key of that name.
    package func written(named name: String) -> Value? {
        guard let entry = entries.first(where: { $0.key == name }), !entry.value.isNull else { return nil }
        return value.child(entry)
    }

    /// Uses `text` as the value of an absent key whose default depends on other keys.
    package func assume(_ key: some SchemaKey, _ text: String, isPlain: Bool = true) {
        _ = value.standard(.scalar(text, isPlain: isPlain), for: key.name)
    }

    /// Reports that a key is missing.
    ///
    /// Nothing is reported if an unknown key was probably meant, which is reported already.
    package func reportMissing(_ key: some SchemaKey) {
        let isMisspelled = entries.contains { entry in
            !section.names.contains(entry.key) && suggestion(for: entry.key, among: section.names) == key.name
        }
        guard !isMisspelled else { return }
        value.reading.report(
            "is missing", at: value.node.isNull ? value.keyMark : value.node.mark, keyPath: value.path(to: key.name))
    }

    /// Returns whether the key of that name is written, with or without a value.
    package func has(_ name: String) -> Bool {
        entries.contains { $0.key == name }
    }
}
