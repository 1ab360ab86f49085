// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Parameters of a query, read as a form (RFC 9421 §2.2.8).
enum QueryParameters {
    /// Returns the values of the parameter whose encoded name is `name`, each encoded again.
    static func values(of name: String, in query: some Collection<UInt8>) -> [[UInt8]] {
        let wanted = Array(name.utf8)
        var values: [[UInt8]] = []
        for pair in query.split(separator: UInt8(ascii: "&")) {
            let mark = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard normalized(pair[..<mark]) == wanted else { continue }
            values.append(normalized(pair[mark...].dropFirst()))
        }
        return values
    }

    /// Returns a decoded part of a form, encoded by the "application/x-www-form-urlencoded percent-encode set" with `%20` for
    /// blanks.
    private static func normalized(_ part: some Collection<UInt8>) -> [UInt8] {
        var encoded: [UInt8] = []
        for byte in String(decoding: FormEncoding.decodedBytes(part), as: UTF8.self).utf8 {
            let isPlain = byte.isAlphanumeric || [0x2A, 0x2D, 0x2E, 0x5F].contains(byte)
            if isPlain { encoded.append(byte) } else { encoded += Hex.percentEncoded(byte) }
        }
        return encoded
    }
}
