// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A place in a JSON text (RFC 6901): `/data/token`, `/tokens/0`.
public struct JSONPointer: Sendable, Hashable {
    /// The pointer as it was written.
    public let source: String
    private let words: [String]

    /// Parses `source`; `nil` where it does not begin with a slash, or has a `~` that is neither `~0` nor `~1` (§3). The
    /// pointer to the whole text, which is empty, is none here.
    public init?(_ source: String) {
        guard source.hasPrefix("/") else { return nil }
        var words: [String] = []
        for written in source.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            var bytes: [UInt8] = []
            var rest = written
            while let byte = rest.popFirst() {
                guard byte == UInt8(ascii: "~") else {
                    bytes.append(byte)
                    continue
                }
                switch rest.popFirst() {
                case UInt8(ascii: "0"): bytes.append(UInt8(ascii: "~"))
                case UInt8(ascii: "1"): bytes.append(UInt8(ascii: "/"))
                default: return nil
                }
            }
            words.append(String(decoding: bytes, as: UTF8.self))
        }
        self.source = source
        self.words = words
    }

    /// What stands there in `value` (§4); `nil` where nothing does.
    public func value(in value: JSONValue) -> JSONValue? {
        var value = value
        for word in words {
            switch value {
            case .object(let members):
                guard let member = members[word] else { return nil }
                value = member
            case .array(let elements):
                // Digits without leading zeros; `-` is what comes after the last.
                guard let index = Int(word), String(index) == word, elements.indices.contains(index) else { return nil }
                value = elements[index]
            default:
                return nil
            }
        }
        return value
    }
}
