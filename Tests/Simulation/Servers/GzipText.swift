// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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

    /// The check sum of RFC 1952 §8.
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
