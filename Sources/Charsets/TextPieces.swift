// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Text as runs of UTF-8, and the bytes between them that are none.
struct TextPieces: Sequence, IteratorProtocol {
    enum Piece {
        case byte(UInt8)
        case text(Range<Int>)
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func next() -> Piece? {
        guard position < bytes.count else { return nil }
        let start = position
        while position < bytes.count, let length = length(at: position) { position += length }
        guard position == start else { return .text(start..<position) }
        position += 1
        return .byte(bytes[start])
    }

    /// Returns the length of the character at `index`; `nil` if the bytes there are no UTF-8 (RFC 3629 §4).
    private func length(at index: Int) -> Int? {
        let first = bytes[index]
        let (length, least, most): (Int, UInt8, UInt8)
        switch first {
        case 0..<0x80: return 1
        case 0xC2...0xDF: (length, least, most) = (2, 0x80, 0xBF)
        case 0xE0: (length, least, most) = (3, 0xA0, 0xBF)
        case 0xED: (length, least, most) = (3, 0x80, 0x9F)
        case 0xE1...0xEF: (length, least, most) = (3, 0x80, 0xBF)
        case 0xF0: (length, least, most) = (4, 0x90, 0xBF)
        case 0xF1...0xF3: (length, least, most) = (4, 0x80, 0xBF)
        case 0xF4: (length, least, most) = (4, 0x80, 0x8F)
        default: return nil
        }
        guard bytes.count - index >= length, (least...most).contains(bytes[index + 1]) else { return nil }
        return bytes[(index + 1)..<(index + length)].allSatisfy({ $0 & 0xC0 == 0x80 }) ? length : nil
    }
}
