// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What this version reads but does not do yet. A line goes when its feature comes; nothing else needs to change.
enum Support {
    /// A key, by its shape, and the values that are meant; `nil` means whatever it holds.
    private struct Gap {
        var shape: String
        var values: Set<String>?
        var message: String
    }

    private static let gaps = [
        Gap(shape: "audit", values: ["journal"], message: "this version logs logins, without the caller's uid")
    ]

    /// Warns where `value` is one of the gaps: at its key, or where its `text` is known, by that.
    static func check(_ value: Value, text: String?) {
        let shape = value.shape.hasSuffix("[]") ? String(value.shape.dropLast(2)) : value.shape
        for gap in gaps where gap.shape == shape {
            guard gap.values.map({ values in text.map(values.contains) ?? false }) ?? (text == nil) else { continue }
            value.report(gap.message, severity: .warning)
        }
    }
}
