// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// An IPv6 address. Two spellings of one address are equal.
package struct IPv6Address: Sendable, Hashable {
    private var pieces: [UInt16]

    /// Parses the text forms of RFC 4291 §2.2, without brackets and zone.
    package init?(_ text: Substring) {
        var head: [UInt16] = []
        // The pieces after `::`, once that was found.
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
                // `UInt16` would accept a plus sign.
                guard (1...4).contains(rest[..<end].count), rest[..<end].allSatisfy({ $0.hexadecimalValue != nil }),
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
        // A gap replaces at least one piece.
        guard tail == nil ? count == 8 : count < 8 else { return nil }
        pieces = head + Array(repeating: 0, count: 8 - count) + (tail ?? [])
    }

    /// Parses four decimal numbers as the last two pieces. Leading zeros are refused, since some parsers read them as
    /// octal.
    private static func embedded(_ text: Substring.UTF8View) -> [UInt16]? {
        let parts = text.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).map(Substring.init)
        let numbers = parts.compactMap { part in UInt8(part).flatMap { String($0) == part ? UInt16($0) : nil } }
        guard parts.count == 4, numbers.count == 4 else { return nil }
        return [numbers[0] << 8 | numbers[1], numbers[2] << 8 | numbers[3]]
    }
}

extension IPv6Address: CustomStringConvertible {
    /// The canonical text of RFC 5952 §4: lower case, no leading zeros, the first longest run of zeros as `::`. The
    /// IPv4 form of §5 is not used, because hosts are only compared.
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
