// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An IPv6 address, so that two spellings of one address are one host.
package struct IPv6Address: Sendable, Hashable {
    private var pieces: [UInt16]

    /// Parses the text forms of RFC 4291 §2.2, without brackets and without a zone; `nil` for anything else.
    package init?(_ text: Substring) {
        var head: [UInt16] = []
        // What stands behind `::`, once that was met.
        var tail: [UInt16]?
        var rest = text.utf8[...]
        func isGap() -> Bool { rest.starts(with: "::".utf8) }
        if isGap() {
            tail = []
            rest = rest.dropFirst(2)
        }
        while !rest.isEmpty {
            guard head.count + (tail?.count ?? 0) < 8 else { return nil }
            let end = rest.firstIndex(of: UInt8(ascii: ":")) ?? rest.endIndex
            let found: [UInt16]
            if end == rest.endIndex, rest.contains(UInt8(ascii: ".")) {
                guard let pair = Self.embedded(rest) else { return nil }
                found = pair
            } else {
                // `UInt16` would take a sign, too.
                guard (1...4).contains(rest[..<end].count), rest[..<end].allSatisfy(Self.isHexDigit),
                    let piece = UInt16(Substring(rest[..<end]), radix: 16)
                else { return nil }
                found = [piece]
            }
            if tail == nil { head += found } else { tail? += found }
            rest = rest[end...]
            if isGap() {
                guard tail == nil else { return nil }
                tail = []
                rest = rest.dropFirst(2)
            } else if !rest.isEmpty {
                rest = rest.dropFirst()
                guard !rest.isEmpty else { return nil }
            }
        }
        let count = head.count + (tail?.count ?? 0)
        // A gap stands for one piece at least.
        guard tail == nil ? count == 8 : count < 8 else { return nil }
        pieces = head + Array(repeating: 0, count: 8 - count) + (tail ?? [])
    }

    /// Four numbers from 0 to 255, which stand for the last two pieces; leading zeros are refused, as some read them as octal.
    private static func embedded(_ text: Substring.UTF8View) -> [UInt16]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Substring.init)
        let numbers = parts.compactMap { part in UInt8(part).flatMap { String($0) == part ? UInt16($0) : nil } }
        guard parts.count == 4, numbers.count == 4 else { return nil }
        return [numbers[0] << 8 | numbers[1], numbers[2] << 8 | numbers[3]]
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
    }
}

extension IPv6Address: CustomStringConvertible {
    /// The canonical text of RFC 5952 §4: lower case, no leading zeros, the first of the longest runs of two or more zeros as `::`.
    /// The IPv4 form of its section 5 is not used: a host is compared here, not read.
    package var description: String {
        var gap = 0..<0
        var start = 0
        for (index, piece) in pieces.enumerated() {
            if piece != 0 {
                start = index + 1
            } else if index + 1 - start > max(gap.count, 1) {
                gap = start..<(index + 1)
            }
        }
        func text(_ part: some Sequence<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        if gap.isEmpty { return text(pieces) }
        return text(pieces[..<gap.lowerBound]) + "::" + text(pieces[gap.upperBound...])
    }
}
