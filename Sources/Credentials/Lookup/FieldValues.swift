// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Secrets

/// Fields as JSON writes them.
enum FieldValues {
    /// The members as secrets. A whole number is taken as its digits, since a PIN is easily written without quotes.
    static func secrets(of members: [String: JSONValue]) throws(CredentialError) -> [String: Secret] {
        var fields: [String: Secret] = [:]
        for (name, value) in members.sorted(by: { $0.key < $1.key }) {
            switch value {
            case .string(let text): fields[name] = Secret(text)
            case .integer(let number): fields[name] = Secret(String(number))
            default: throw CredentialError(reason: "the field \"\(name)\" is neither text nor a whole number")
            }
        }
        return fields
    }
}

extension Secret {
    /// Without one line feed at the end, also after a carriage return; whole where it holds a zero byte, as it is no text.
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
