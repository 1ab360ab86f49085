// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Condition on a value in the JSON body of a response.
public struct JSONMatcher: Sendable, Hashable {
    /// Location of the value.
    public var pointer: JSONPointer
    /// Text that the value contains, ignoring case; a number, `true` or `false` is this text. Nil: any value but `null`.
    public var text: String?

    /// Creates a condition.
    public init(pointer: JSONPointer, text: String? = nil) {
        self.pointer = pointer
        self.text = text
    }

    /// Returns whether `json` meets the condition.
    func matches(_ json: JSONValue) -> Bool {
        guard let value = pointer.value(in: json), value != .null else { return false }
        guard let text else { return true }
        switch value {
        case .string(let found): return found.containsText(text)
        case .bool, .integer, .double: return String(decoding: value.serialized(), as: UTF8.self) == text
        case .array, .object, .null: return false
        }
    }
}
