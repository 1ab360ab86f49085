// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

extension String {
    /// Returns the text after `start`, or `nil`.
    func components(after start: String) -> String? { (self + "\u{0}").components(between: start, and: "\u{0}") }

    /// Returns the text between `start` and `end`, or `nil`.
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

/// The gzip coding (RFC 1952) of a text, apart from the program's own: one block of fixed codes, without any repetition.
enum GzipText {
    private static let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]

    /// Returns the coding of `bytes`.
    static func encode(_ bytes: [UInt8]) -> [UInt8] {
        var bits = Bits()
        // The last block, of fixed codes (RFC 1951 §3.2.3).
        bits.append(1, count: 1)
        bits.append(1, count: 2)
        for byte in bytes { bits.append(literal: byte) }
        // The end of the block.
        bits.append(0, count: 7)
        return header + bits.bytes + little(checksum(bytes)) + little(UInt32(truncatingIfNeeded: bytes.count))
    }

    private static func little(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }

    /// Returns the check sum of RFC 1952 §8.
    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { sum, byte in
            (0..<8).reduce(sum ^ UInt32(byte)) { value, _ in value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1 }
        }
    }

    private struct Bits {
        var bytes: [UInt8] = []
        private var free = 0

        /// Appends a number, its lowest bit first.
        mutating func append(_ number: Int, count: Int) {
            for index in 0..<count {
                if free == 0 {
                    bytes.append(0)
                    free = 8
                }
                bytes[bytes.count - 1] |= UInt8(number >> index & 1) << UInt8(8 - free)
                free -= 1
            }
        }

        /// Appends the code of a literal, its highest bit first (RFC 1951 §3.2.6).
        mutating func append(literal byte: UInt8) {
            let (code, length) = byte < 144 ? (0x30 + Int(byte), 8) : (0x190 + Int(byte) - 144, 9)
            for index in (0..<length).reversed() { append(code >> index & 1, count: 1) }
        }
    }
}
