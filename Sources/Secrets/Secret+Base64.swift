// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension Secret {
    /// The two alphabets of base64.
    public enum Base64Alphabet: Sendable {
        /// With `+` and `/`, padded by `=` (RFC 4648 §4): what `Authorization: Basic` takes.
        case standard
        /// With `-` and `_`, without padding (RFC 4648 §5, RFC 7515 §2): what tokens are made of.
        case url

        fileprivate var digits: StaticString {
            switch self {
            case .standard: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            case .url: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            }
        }
    }

    /// The secret in base64, itself a secret; no copy of either stays behind.
    public func base64(_ alphabet: Base64Alphabet = .standard) -> Secret {
        var digits: [UInt8] = []
        alphabet.digits.withUTF8Buffer { unsafe digits.append(contentsOf: $0) }
        var text = SecretBuilder(capacity: (count / 3 + 1) * 4)
        withBytes { bytes in
            var index = 0
            while index < bytes.count {
                let taken = min(bytes.count - index, 3)
                var group: UInt32 = 0
                for offset in 0..<3 {
                    group = group << 8 | (offset < taken ? UInt32(bytes[index + offset]) : 0)
                }
                for position in 0...taken {
                    text.append(digits[Int(group >> (18 - 6 * UInt32(position)) & 63)])
                }
                if alphabet == .standard {
                    for _ in taken..<3 { text.append(UInt8(ascii: "=")) }
                }
                index += taken
            }
        }
        return text.finish()
    }
}
