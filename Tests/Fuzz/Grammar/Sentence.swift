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

    /// Takes back what stands behind the first `count` bytes.
    mutating func cut(to count: Int) { bytes.removeLast(bytes.count - count) }

    /// White space that may stand there: mostly one space or none.
    @inline(__always)
    mutating func putBlanks(most: Int = 3) {
        switch choices.below(8) {
        case 0: for _ in 0..<choices.below(most + 1) { put(choices.flip() ? 0x20 : 0x09) }
        case 1: break
        default: put(0x20)
        }
    }

    /// White space that hardly ever stands there.
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
