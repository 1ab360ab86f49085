// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension JudgeTable {
    /// Returns the bytes of a column, in which `\xNN` is a byte; `nil` for another backslash.
    package static func bytes(_ column: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = column.utf8[...]
        while let first = rest.popFirst() {
            guard first == UInt8(ascii: "\\") else {
                bytes.append(first)
                continue
            }
            guard rest.popFirst() == UInt8(ascii: "x"), let byte = UInt8(Substring(rest.prefix(2)), radix: 16) else {
                return nil
            }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return bytes
    }
}
