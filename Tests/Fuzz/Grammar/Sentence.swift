// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A sentence on the way: its bytes so far, and the choices that it is made by.
struct Sentence {
    private(set) var bytes: [UInt8] = []
    var choices = Choices(seed: 0)

    /// Begins the sentence of a seed, in the memory of the last one.
    mutating func begin(_ seed: UInt64) {
        bytes.removeAll(keepingCapacity: true)
        choices = Choices(seed: seed)
    }

    @inline(__always)
    var count: Int { bytes.count }

    @inline(__always)
    mutating func put(_ byte: UInt8) { bytes.append(byte) }

    @inline(__always)
    mutating func put(_ text: StaticString) {
        unsafe bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func put(_ other: [UInt8]) { bytes.append(contentsOf: other) }

    mutating func put(_ other: ArraySlice<UInt8>) { bytes.append(contentsOf: other) }

    @_disfavoredOverload
    mutating func put(_ text: String) { bytes.append(contentsOf: text.utf8) }

    /// Puts the text with the case of each letter changed or not.
    mutating func putInSomeCase(_ text: StaticString) {
        let start = bytes.count
        put(text)
        guard choices.once(in: 3) else { return }
        let bits = choices.word()
        for index in start..<bytes.count where bits >> UInt64((index &- start) & 63) & 1 == 1 {
            let letter = bytes[index] | 0x20
            if letter >= 0x61, letter <= 0x7A { bytes[index] ^= 0x20 }
        }
    }

    /// Puts digits, with as many zeros in front.
    mutating func put(_ number: UInt64, radix: Int = 10, zeros: Int = 0, isUpper: Bool = false) {
        for _ in 0..<zeros { bytes.append(0x30) }
        let start = bytes.count
        var rest = number
        repeat {
            let digit = UInt8(truncatingIfNeeded: rest % UInt64(radix))
            bytes.append(digit < 10 ? 0x30 + digit : (isUpper ? 0x41 : 0x61) + digit - 10)
            rest /= UInt64(radix)
        } while rest > 0
        var (low, high) = (start, bytes.count - 1)
        while low < high {
            bytes.swapAt(low, high)
            low += 1
            high -= 1
        }
    }

    /// Removes everything after the first `count` bytes.
    mutating func cut(to count: Int) { bytes.removeLast(bytes.count - count) }

    /// Puts optional white space: mostly one space or none.
    @inline(__always)
    mutating func putBlanks(most: Int = 3) {
        switch choices.below(8) {
        case 0: for _ in 0..<choices.below(most + 1) { put(choices.flip() ? 0x20 : 0x09) }
        case 1: break
        default: put(0x20)
        }
    }

    /// Puts optional white space that is rare at this place.
    @inline(__always)
    mutating func putRareBlanks() {
        if choices.once(in: 12) { for _ in 0...choices.below(2) { put(choices.flip() ? 0x20 : 0x09) } }
    }

    /// Puts any bytes, `count` of them.
    mutating func putAnything(_ count: Int) {
        for _ in 0..<count { put(UInt8(truncatingIfNeeded: choices.below(256))) }
    }

    /// Changes, takes out, doubles or puts in a byte somewhere. What the sentence means is unknown then.
    mutating func blur() {
        guard !bytes.isEmpty else { return put(UInt8(choices.below(256))) }
        for _ in 0...choices.below(2) where !bytes.isEmpty {
            let place = choices.below(min(bytes.count, 65_536))
            switch choices.below(5) {
            case 0: bytes[place] = UInt8(choices.below(256))
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(bytes[place], at: place)
            case 3: bytes[place] ^= 1 << UInt8(choices.below(8))
            default: bytes.insert(choices.pick(Self.signs), at: place)
            }
        }
    }

    private static let signs = Array("\r\n\0\t \"\\,;:=%/&<>{}[]()*#".utf8)
}

/// The choices that make a sentence: each seed has its own, and they cost next to nothing.
struct Choices {
    private var state: UInt64
    private var pool: UInt64 = 0
    private var left = 0

    init(seed: UInt64) { state = seed &* 0xD134_2543_DE82_EF95 &+ 0x2545_F491_4F6C_DD1D }

    /// 64 bits (splitmix64).
    @inline(__always)
    mutating func word() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to, but not including, `end`, which is at most 65,536. A word makes four of them.
    @inline(__always)
    mutating func below(_ end: Int) -> Int {
        if left == 0 {
            pool = word()
            left = 4
        }
        left &-= 1
        defer { pool >>= 16 }
        return Int(truncatingIfNeeded: ((pool & 0xFFFF) &* UInt64(truncatingIfNeeded: end)) >> 16)
    }

    /// True once in `count` times.
    @inline(__always)
    mutating func once(in count: Int) -> Bool { below(count) == 0 }

    @inline(__always)
    mutating func flip() -> Bool { below(2) == 0 }

    /// One of them.
    @inline(__always)
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

    /// Returns a number of 64 bits: near a limit, near a power of two, small, or any.
    mutating func number() -> UInt64 {
        switch below(6) {
        case 0: return [0, 1, 9, 10, UInt64(UInt32.max), UInt64(Int64.max), UInt64(Int64.max) + 1, .max][below(8)]
        case 1: return (1 << UInt64(below(64))) &- UInt64(below(2))
        case 2: return word()
        case 3: return word() >> UInt64(below(64))
        default: return UInt64(below(300))
        }
    }

    /// The ends of the pieces in which `count` bytes arrive: one cut, a few, or every byte alone.
    mutating func arrivals(_ count: Int, into ends: inout [Int]) {
        ends.removeAll(keepingCapacity: true)
        let longest = once(in: 6) ? 1 : 1 + below(min(max(count, 2), 60_000))
        var end = 0
        while end < count {
            end = min(end + 1 + below(longest), count)
            ends.append(end)
        }
        if count == 0 { ends.append(0) }
    }
}
