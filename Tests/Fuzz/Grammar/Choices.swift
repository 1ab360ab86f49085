// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

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

    /// A number from 0 up to, but not including, `end`, which is at most 65,536. A word makes four of them.
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

    /// A number of 64 bits that is near an end, near a power of two, small, or anything.
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
