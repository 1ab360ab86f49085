// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A reply of a Valkey or Redis server, in version 2 of its protocol (RESP2).
package enum Reply: Sendable, Equatable {
    /// A string of any bytes.
    case string([UInt8])
    /// A short word, such as `OK` or `PONG`.
    case status(String)
    /// An error: a code in capitals, such as `NOSCRIPT`, and words that may repeat the command.
    case error(String)
    /// A number.
    case integer(Int64)
    /// The string or list does not exist.
    case null
    /// Several replies.
    indirect case array([Reply])
}

extension Reply {
    /// The bytes of a string.
    package var bytes: [UInt8]? {
        if case .string(let bytes) = self { bytes } else { nil }
    }

    /// The text of a string or a status, if it is UTF-8.
    package var text: String? {
        switch self {
        case .string(let bytes): String(validating: bytes, as: UTF8.self)
        case .status(let word): word
        default: nil
        }
    }

    /// The number of an integer.
    package var number: Int64? {
        if case .integer(let number) = self { number } else { nil }
    }

    /// The replies of a list.
    package var elements: [Reply]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The code of an error: its first word, at most 32 characters.
    package var errorCode: String? {
        guard case .error(let text) = self else { return nil }
        return String(text.prefix { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }.prefix(32))
    }
}

/// The reason why a reply was refused. Nothing after it can be read.
package enum ReplyError: Error, Sendable, Equatable {
    /// The reply breaks a rule of the protocol.
    case malformed
    /// The reply is longer than the limits of the reader.
    case tooLong
    /// The reply has more elements than the limits of the reader.
    case tooManyElements
    /// Lists within lists, more than seven deep.
    case tooDeep
    /// Memory for the reply is missing.
    case outOfMemory
}

extension ReplyError: CustomStringConvertible {
    /// The reason in words, without a full stop.
    package var description: String {
        switch self {
        case .malformed: "its answer follows no rule of the protocol"
        case .tooLong: "its answer is too long"
        case .tooManyElements: "its answer has too many elements"
        case .tooDeep: "its answer has lists within lists"
        case .outOfMemory: "there is no memory for its answer"
        }
    }
}
