// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// HTML's "shared declarative refresh steps", for field values: their white space is no more than spaces and tabs.
enum RefreshOracle {
    /// The address, before it is parsed; `nil` where there is no refresh or none elsewhere.
    static func target(of value: [UInt8]) -> [UInt8]? {
        var rest = value[...]
        func skipBlanks() { rest = rest.drop { $0 == 32 || $0 == 9 } }
        skipBlanks()
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        if digits.isEmpty, rest.first != UInt8(ascii: ".") { return nil }
        rest = rest.drop { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
        guard let sign = rest.first else { return nil }
        guard [UInt8(ascii: ";"), UInt8(ascii: ","), 32, 9].contains(sign) else { return nil }
        skipBlanks()
        if rest.first == UInt8(ascii: ";") || rest.first == UInt8(ascii: ",") { rest = rest.dropFirst() }
        skipBlanks()
        let whole = rest
        if rest.first == UInt8(ascii: "u") || rest.first == UInt8(ascii: "U") {
            guard String(decoding: rest.prefix(3), as: UTF8.self).lowercased() == "url" else { return Array(whole) }
            rest = rest.dropFirst(3)
            skipBlanks()
            guard rest.first == UInt8(ascii: "=") else { return Array(whole) }
            rest = rest.dropFirst()
            skipBlanks()
        }
        guard let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            return Array(rest)
        }
        return Array(rest.dropFirst().prefix { $0 != quote })
    }
}
