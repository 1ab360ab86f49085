// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Removal of secrets from text of another program.
package enum Redaction {
    /// Returns `text` with `<redacted>` for each of the secrets, also where they are percent-encoded or escaped as in
    /// JSON.
    package static func text(_ text: String, without secrets: [String]) -> String {
        var forms: Set<String> = []
        for secret in secrets where !secret.isEmpty {
            let quoted = String(decoding: JSONValue.string(secret).serialized(), as: UTF8.self)
            forms.formUnion([secret, String(quoted.dropFirst().dropLast()), FormEncoding.percentEncoded(secret)])
        }
        var result = text
        // The longest first: a secret may be part of another.
        for form in forms.sorted(by: { ($0.utf8.count, $0) > ($1.utf8.count, $1) }) {
            result = removing(form, from: result)
        }
        return result
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
