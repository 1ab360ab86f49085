// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Secrets

/// Removal of secrets from text of another program.
package enum Redaction {
    /// Returns `text` with `<redacted>` for each of the secrets. They are also found escaped as in JSON, encoded as in
    /// an address or a form, or, from six bytes on, in base64 or hexadecimal: shorter ones would be found by accident.
    package static func text(_ text: String, without secrets: [String]) -> String {
        var forms: Set<String> = []
        for secret in secrets where !secret.isEmpty {
            let quoted = String(decoding: JSONValue.string(secret).serialized(), as: UTF8.self)
            forms.formUnion([secret, String(quoted.dropFirst().dropLast())])
            let form = String(decoding: FormEncoding.encoded(Secret(secret)), as: UTF8.self)
            for coded in [FormEncoding.percentEncoded(secret), form] {
                forms.formUnion([coded, loweringDigits(of: coded)])
            }
            let bytes = Array(secret.utf8)
            guard bytes.count >= ResponseCleaner.shortest else { continue }
            forms.formUnion(base64(bytes))
            let digits = Hex.encode(bytes)
            forms.formUnion([digits, digits.uppercased()])
        }
        var result = text
        // The longest first: a secret may be part of another.
        for form in forms.sorted(by: { ($0.utf8.count, $0) > ($1.utf8.count, $1) }) {
            result = removing(form, from: result)
        }
        return result
    }

    /// The base64 digits that depend on these bytes alone, independent of the bytes before and after them.
    private static func base64(_ bytes: [UInt8]) -> [String] {
        [Base64.Alphabet.standard, .url].flatMap { alphabet in
            (0..<3).map { before in
                let digits = Base64.encode(Array(repeating: 0, count: before) + bytes, alphabet)
                let own = (before * 8 + 5) / 6..<(before + bytes.count) * 8 / 6
                return String(decoding: Array(digits.utf8)[own], as: UTF8.self)
            }
        }
    }

    /// `%2f` for `%2F`.
    private static func loweringDigits(of text: String) -> String {
        var bytes = Array(text.utf8)
        for index in bytes.indices.dropLast(2) where bytes[index] == UInt8(ascii: "%") {
            for digit in index + 1...index + 2 where bytes[digit] >= UInt8(ascii: "A") { bytes[digit] |= 0x20 }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func removing(_ secret: String, from text: String) -> String {
        var result = ""
        var rest = text[...]
        while let found = rest.firstRange(of: secret) {
            result += rest[..<found.lowerBound] + "<redacted>"
            rest = rest[found.upperBound...]
        }
        return result + rest
    }
}
