// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import HTTPWire

/// Ends a request that goes round in a circle, such as one whose upstream is the listener that it came in by.
///
/// Every pass leaves its mark in `Via` (RFC 9110 §7.6.3). Having passed here is no loop in itself: one listener may well be
/// another one's upstream, on this machine or the next, so that two sorts of challenges are answered. So the marks are
/// counted, whichever countersign left them; a name of this very process would let a loop through two of them go on.
enum LoopGuard {
    /// So many passes are taken for a loop.
    static let limit = 8

    /// How often a `Via` value names countersign.
    static func passes(_ value: ByteRange, in bytes: Span<UInt8>) -> Int {
        guard value.end <= bytes.count else { return 0 }
        var count = 0
        var index = value.start
        while index < value.end {
            // received-protocol RWS received-by [ RWS comment ]
            index = skip(bytes, from: index, to: value.end) { isBlank($0) || $0 == comma }
            index = skip(bytes, from: index, to: value.end) { !isBlank($0) && $0 != comma }
            let start = skip(bytes, from: index, to: value.end, while: isBlank)
            index = skip(bytes, from: start, to: value.end) { !isBlank($0) && $0 != comma && $0 != opening }
            if bytes.matches(ByteRange(start: start, end: index), ignoringCase: "countersign") { count += 1 }
            index = endOfElement(bytes, from: index, to: value.end)
        }
        return count
    }

    /// The next comma that is not within a comment (RFC 9110 §5.6.5), or the end.
    private static func endOfElement(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Int {
        var depth = 0
        var index = start
        while index < end {
            switch bytes[index] {
            case opening: depth += 1
            case UInt8(ascii: ")"): depth -= 1
            case UInt8(ascii: "\\") where depth > 0: index += 1
            case comma where depth <= 0: return index
            default: break
            }
            index += 1
        }
        return end
    }

    private static func skip(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, while condition: (UInt8) -> Bool
    ) -> Int {
        var index = start
        while index < end, condition(bytes[index]) { index += 1 }
        return index
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static let comma = UInt8(ascii: ",")
    private static let opening = UInt8(ascii: "(")
}
