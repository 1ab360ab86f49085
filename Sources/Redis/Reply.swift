// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a Valkey or Redis server says, in version 2 of its protocol (RESP2).
package enum Reply: Sendable, Equatable {
    /// A string of any bytes.
    case string([UInt8])
    /// A short word, such as `OK` or `PONG`.
    case status(String)
    /// It refuses: a code in capitals, such as `NOSCRIPT`, and words for people. They may repeat what it was sent.
    case error(String)
    /// A number.
    case integer(Int64)
    /// Nothing: no such string, or no such list.
    case null
    /// Several replies.
    indirect case array([Reply])
}

extension Reply {
    /// The bytes of a string.
    package var bytes: [UInt8]? {
        if case .string(let bytes) = self { bytes } else { nil }
    }

    /// The text of a string or a word, where it is UTF-8.
    package var text: String? {
        switch self {
        case .string(let bytes): String(validating: bytes, as: UTF8.self)
        case .status(let word): word
        default: nil
        }
    }

    /// The number, where it is one.
    package var number: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    /// The replies of a list.
    package var elements: [Reply]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The code of an error: its first word, at most 32 signs of it.
    package var errorCode: String? {
        guard case .error(let text) = self else { return nil }
        return String(text.prefix { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }.prefix(32))
    }
}
