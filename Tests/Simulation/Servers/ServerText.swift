// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension String {
    /// Returns what stands after a text, or `nil`.
    func components(after start: String) -> String? { (self + "\u{0}").components(between: start, and: "\u{0}") }

    /// Returns what stands between two texts, or `nil`.
    func components(between start: String, and end: String) -> String? {
        let bytes = Array(utf8)
        let (start, end) = (Array(start.utf8), Array(end.utf8))
        func find(_ part: [UInt8], from place: Int) -> Int? {
            guard bytes.count >= part.count else { return nil }
            return (place...max(place, bytes.count - part.count)).first {
                $0 + part.count <= bytes.count && bytes[$0..<$0 + part.count].elementsEqual(part)
            }
        }
        guard let begin = find(start, from: 0) else { return nil }
        guard let stop = find(end, from: begin + start.count) else { return nil }
        return String(decoding: bytes[begin + start.count..<stop], as: UTF8.self)
    }
}

/// The text of Base64 (RFC 4648 §4), apart from the program's own.
enum Base64Text {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func encode(_ text: String) -> String {
        var encoded: [UInt8] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for index in 0..<3 { bits = bits << 8 | (index < group.count ? UInt32(group[start + index]) : 0) }
            for index in 0..<4 {
                let value = Int(bits >> UInt32(18 - 6 * index)) & 63
                encoded.append(index <= group.count ? alphabet[value] : UInt8(ascii: "="))
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    static func decode(_ text: String) -> String {
        var bits: UInt32 = 0
        var count = 0
        var bytes: [UInt8] = []
        for character in text.utf8 {
            guard let value = alphabet.firstIndex(of: character) else { break }
            bits = (bits << 6) | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
