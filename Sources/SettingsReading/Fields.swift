// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The keys of one mapping. A key that nobody asked for is unknown, which `finish` reports.
package final class Fields {
    /// The mapping itself.
    package let value: Value
    private let entries: [YAMLNode.Entry]
    private var asked: [String] = []

    init(_ value: Value, _ entries: [YAMLNode.Entry]) {
        self.value = value
        self.entries = entries
    }

    /// The value of `key`; `nil` where it is not there, or there without a value, which means the same.
    package subscript(key: String) -> Value? {
        asked.append(key)
        value.reading.knows(key, at: value.path)
        guard let entry = entries.first(where: { $0.key == key }) else { return nil }
        return entry.value.isNull ? nil : value.child(entry)
    }

    /// The value of `key`, whose absence is reported.
    package func required(_ key: String) -> Value? {
        guard let child = self[key] else {
            let path = value.path.isEmpty ? key : "\(value.path).\(key)"
            value.reading.report("is missing", at: value.node.isNull ? value.keyMark : value.node.mark, keyPath: path)
            return nil
        }
        return child
    }

    /// True if the key is written, with or without a value.
    package func has(_ key: String) -> Bool {
        entries.contains { $0.key == key }
    }

    /// Reports every key that was not asked for.
    package func finish() {
        for entry in entries where !asked.contains(entry.key) {
            let child = value.child(entry)
            let advice =
                SecretNames.contains(entry.key)
                ? "; secrets do not stand in this file: keep it in a credential source and name that by `credential:`"
                : didYouMean(entry.key, among: asked)
            value.reading.report("unknown key\(advice)", at: entry.keyMark, keyPath: child.path)
        }
    }
}
