// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A table of `Tests/Judges`: behaviour expected by other projects, one case per line.
package struct JudgeTable: Sendable {
    /// The columns of each line.
    package let rows: [[String]]

    /// Reads the table of that name, of the folder `COUNTERSIGN_JUDGES` if it is there. Traps if there is no such table, or if it is empty: a test without cases cannot
    /// fail.
    package init(_ name: String) {
        let folder = #filePath.split(separator: "/").dropLast(2).map { "/\($0)" }.joined()
        var path = "\(folder)/Judges/\(name).tsv"
        if let other = unsafe getenv("COUNTERSIGN_JUDGES").map({ unsafe String(cString: $0) }) {
            let generated = "\(other)/\(name).tsv"
            if unsafe access(generated, R_OK) == 0 { path = generated }
        }
        var bytes: [UInt8] = []
        if let stream = unsafe fopen(path, "r") {
            while case let byte = unsafe getc(stream), byte != EOF { bytes.append(UInt8(truncatingIfNeeded: byte)) }
            unsafe fclose(stream)
        }
        rows = String(decoding: bytes, as: UTF8.self).split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
        precondition(!rows.isEmpty, "\(path) has no cases")
    }
}

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
