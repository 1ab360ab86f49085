// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Address of a step with `{name}` in place of values that earlier answers had: `/auth/login_flow/{flow}`.
///
/// A value is percent-encoded, so that it is a part of one segment, or of one value of the query, and never changes where
/// the address leads. Other braces stay as they are.
enum AddressTemplate {
    /// The names in braces.
    static func names(in text: String) -> Set<String> {
        var names: Set<String> = []
        _ = replacing(text) { name in
            names.insert(name)
            return nil
        }
        return names
    }

    /// Returns the address with its values. `nil` if one is empty, or only dots, which would name another folder.
    static func filled(_ text: String, with values: [String: Secret]) -> String? {
        var isUsable = true
        let filled = replacing(text) { name in
            guard let value = values[name]?.revealBytes() else { return nil }
            if value.allSatisfy({ $0 == UInt8(ascii: ".") }) { isUsable = false }
            return String(
                decoding: value.flatMap { ByteClass.unreserved.contains($0) ? [$0] : Hex.percentEncoded($0) },
                as: UTF8.self)
        }
        return isUsable ? filled : nil
    }

    private static func replacing(_ text: String, by value: (String) -> String?) -> String {
        var result = ""
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            let name = String(rest[rest.index(after: open)..<close])
            result += rest[..<open] + (value(name) ?? "{\(name)}")
            rest = rest[rest.index(after: close)...]
        }
        return result + rest
    }
}
