// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The names and values of a query or of an `application/x-www-form-urlencoded` body, in order.
package struct FormFields: Sendable, Equatable {
    /// The names and values, decoded.
    package private(set) var pairs: [(name: String, value: String)] = []
    /// True if every escape was valid and every text UTF-8.
    package private(set) var isWellFormed = true

    /// Parses `a=1&b=2`; malformed text is kept unchanged and clears `isWellFormed`.
    package init(parsing bytes: some Collection<UInt8>) {
        for pair in bytes.split(separator: UInt8(ascii: "&")) {
            let halves = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            pairs.append((decode(halves.first ?? pair), halves.count > 1 ? decode(halves[1]) : ""))
        }
    }

    /// The value of the only field of that name; `nil` if it is missing or comes twice (RFC 6749 §3.1).
    package subscript(name: String) -> String? {
        let values = pairs.filter { $0.name == name }
        return values.count == 1 ? values[0].value : nil
    }

    /// Returns true if both have equal fields in equal order.
    package static func == (left: FormFields, right: FormFields) -> Bool {
        left.pairs.elementsEqual(right.pairs) { $0 == $1 }
    }

    private mutating func decode(_ text: some Collection<UInt8>) -> String {
        var result: [UInt8] = []
        var rest = Array(text)[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "+"): result.append(0x20)
            case UInt8(ascii: "%"):
                guard let escaped = hexadecimal(rest.prefix(2)) else {
                    isWellFormed = false
                    result.append(byte)
                    continue
                }
                rest = rest.dropFirst(2)
                result.append(escaped)
            default: result.append(byte)
            }
        }
        guard let text = String(validating: result, as: UTF8.self) else {
            isWellFormed = false
            return String(decoding: result, as: UTF8.self)
        }
        return text
    }
}

/// Percent-encodes everything but the unreserved characters (RFC 3986 §2.3).
package func percentEncoded(_ text: String) -> String {
    text.utf8.map { byte in
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "~"):
            String(Unicode.Scalar(byte))
        default:
            "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }
    }.joined()
}

private func hexadecimal(_ digits: some Collection<UInt8>) -> UInt8? {
    guard digits.count == 2, digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
    return UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
}
