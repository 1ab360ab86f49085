// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Settings as a text that is the same for the same settings, in every process: to be compared by its digest.
enum SettingsText {
    /// All that `value` holds, by name; what has no order of its own is sorted.
    static func of(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        let children = mirror.children.map { child in "\(child.label ?? ""):\(of(child.value))" }
        switch mirror.displayStyle {
        case nil: return String(reflecting: value)
        case .dictionary, .set: return "{\(children.sorted().joined(separator: ","))}"
        case .enum where children.isEmpty: return "\(type(of: value)).\(value)"
        default: return "\(type(of: value))(\(children.joined(separator: ",")))"
        }
    }
}
