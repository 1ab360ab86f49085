// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
package import Secrets

/// Names and values of credential fields, as the sources write them.
enum CredentialFields {
    /// Returns the members of a JSON object as secrets.
    ///
    /// An integer counts as its digits, because a PIN is easily written without quotes.
    static func secrets(of members: [String: JSONValue]) throws(CredentialError) -> [String: Secret] {
        var fields: [String: Secret] = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            switch value {
            case .string(let text): fields[name] = Secret(text)
            case .integer(let number): fields[name] = Secret(String(number))
            default: throw CredentialError(reason: "the field \"\(name)\" is neither a string nor an integer")
            }
        }
        return fields
    }

    /// Returns a name in lower case, with `-` for each character other than ASCII letters and digits.
    ///
    /// `CLIENT_ID` and `client-id` have the same folded name.
    static func foldedName(_ name: String) -> String {
        mapped(name, else: "-").lowercased()
    }

    /// Returns a name in upper case, with `_` for each character other than ASCII letters and digits.
    static func environmentName(_ name: String) -> String {
        mapped(name, else: "_").uppercased()
    }

    private static func mapped(_ name: String, else replacement: Unicode.Scalar) -> String {
        var text = String.UnicodeScalarView()
        for scalar in name.unicodeScalars {
            let isUnchanged = scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar))
            text.append(isUnchanged ? scalar : replacement)
        }
        return String(text)
    }
}

extension Secret {
    /// The secret without one final line break (LF or CRLF).
    ///
    /// A secret with a zero byte is not text and stays unchanged.
    var withoutTrailingNewline: Secret {
        withBytes { bytes in
            guard bytes.count > 0, bytes[bytes.count - 1] == UInt8(ascii: "\n") else { return self }
            for index in bytes.indices where bytes[index] == 0 { return self }
            var length = bytes.count - 1
            if length > 0, bytes[length - 1] == UInt8(ascii: "\r") { length -= 1 }
            var builder = SecretBuilder(capacity: length)
            for index in 0..<length { builder.append(bytes[index]) }
            return builder.finish()
        }
    }
}

extension Credential {
    /// All fields in a canonical encoding, as input of a keyed digest.
    ///
    /// Names are folded as in environment variables, so a value from any source has one encoding. Each part is preceded by its
    /// length, so different fields never have equal encodings.
    package var canonical: Secret {
        let sorted = fields.map { (name: CredentialFields.foldedName($0.key), original: $0.key, value: $0.value) }
            .sorted { ($0.name, $0.original) < ($1.name, $1.original) }
        var fields: [(name: String, value: Secret)] = []
        for field in sorted where !fields.contains(where: { $0.name == field.name && $0.value == field.value }) {
            fields.append((field.name, field.value))
        }
        var parts: [Secret] = []
        for (name, value) in fields {
            var head: [UInt8] = []
            head.append(number: name.utf8.count, bytes: 4)
            head += name.utf8
            head.append(number: value.count, bytes: 4)
            parts.append(Secret(head))
            parts.append(value)
        }
        return .joining(parts)
    }
}
