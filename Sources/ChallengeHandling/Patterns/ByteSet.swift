// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Set of bytes.
struct ByteSet: Sendable, Hashable {
    private var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

    /// Creates an empty set.
    init() {}

    init(_ byte: UInt8) { insert(byte) }

    /// All bytes.
    static let all: ByteSet = {
        var set = ByteSet()
        set.words = (.max, .max, .max, .max)
        return set
    }()
    /// ASCII digits.
    static let digits = ByteSet(where: { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") })
    /// ASCII letters, digits, and `_`.
    static let wordBytes = ByteSet(where: {
        digits.contains($0) || $0 == UInt8(ascii: "_")
            || ($0 | 0x20) >= UInt8(ascii: "a") && ($0 | 0x20) <= UInt8(ascii: "z")
    })
    /// ASCII white space.
    static let spaces = ByteSet(where: { $0 == 0x20 || $0 >= 0x09 && $0 <= 0x0D })

    private init(where isMember: (UInt8) -> Bool) {
        for byte in UInt8.min...UInt8.max where isMember(byte) { insert(byte) }
    }

    /// Returns whether `byte` belongs to the set.
    func contains(_ byte: UInt8) -> Bool {
        let word =
            switch byte >> 6 {
            case 0: words.0
            case 1: words.1
            case 2: words.2
            default: words.3
            }
        return word >> UInt64(byte & 63) & 1 == 1
    }

    /// The byte of a set of one; nil for other sets.
    var onlyByte: UInt8? {
        let counts = [words.0, words.1, words.2, words.3].map(\.nonzeroBitCount)
        guard counts.reduce(0, +) == 1 else { return nil }
        return (UInt8.min...UInt8.max).first(where: contains)
    }

    /// Adds `byte`.
    mutating func insert(_ byte: UInt8) {
        let bit = UInt64(1) << UInt64(byte & 63)
        switch byte >> 6 {
        case 0: words.0 |= bit
        case 1: words.1 |= bit
        case 2: words.2 |= bit
        default: words.3 |= bit
        }
    }

    /// Adds the bytes of `other`.
    mutating func formUnion(_ other: ByteSet) {
        words = (
            words.0 | other.words.0, words.1 | other.words.1, words.2 | other.words.2, words.3 | other.words.3
        )
    }

    /// Returns the set without the bytes of `other`.
    func subtracting(_ other: ByteSet) -> ByteSet {
        var set = self
        set.words = (
            words.0 & ~other.words.0, words.1 & ~other.words.1, words.2 & ~other.words.2, words.3 & ~other.words.3
        )
        return set
    }

    static func == (left: ByteSet, right: ByteSet) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
        hasher.combine(words.2)
        hasher.combine(words.3)
    }
}
