// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import HTTPWire

/// Detects a request that runs in a circle, for example if its upstream is the listener that it came from.
///
/// Every pass adds a member to `Via` (RFC 9110 §7.6.3). A single pass is not a loop: a listener may be the upstream of another
/// one, on this machine or the next, to answer two kinds of challenges. So the passes are counted, whichever countersign added
/// them. If only this process were counted, a loop through two processes would never end.
enum LoopGuard {
    /// The number of passes that counts as a loop.
    static let limit = 8

    /// Returns the number of times that a `Via` value names countersign.
    static func passes(_ value: ByteRange, in bytes: Span<UInt8>) -> Int {
        guard value.end <= bytes.count else { return 0 }
        var count = 0
        var index = value.start
        while index < value.end {
            // received-protocol RWS received-by [ RWS comment ]
            index = skip(bytes, from: index, to: value.end) { $0.isBlank || $0 == comma }
            index = skip(bytes, from: index, to: value.end) { !$0.isBlank && $0 != comma }
            let start = skip(bytes, from: index, to: value.end, while: \.isBlank)
            index = skip(bytes, from: start, to: value.end) { !$0.isBlank && $0 != comma && $0 != opening }
            if bytes.matches(ByteRange(start: start, end: index), ignoringCase: "countersign") { count += 1 }
            index = endOfElement(bytes, from: index, to: value.end)
        }
        return count
    }

    /// Returns the index of the next comma outside a comment (RFC 9110 §5.6.5), or the end.
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

    private static let comma = UInt8(ascii: ",")
    private static let opening = UInt8(ascii: "(")
}

/// The limit on forwarding an OPTIONS request (RFC 9110 §7.6.2). Other methods except TRACE, which is not served, may ignore the
/// field, and it is passed on.
enum MaxForwards: Equatable {
    /// The field is absent, or has no meaning with this method.
    case unlimited
    /// The number of times left; with 0, the proxy itself must answer.
    case left(UInt64)
    /// Repeated or not a number, so the responsible server is unknown.
    case invalid

    /// Reads the limit of a request.
    init(_ head: borrowing RequestHead, in bytes: Span<UInt8>) {
        self = .unlimited
        guard head.method == .options else { return }
        for line in head.fields where line.kind == .maxForwards {
            guard self == .unlimited, let number = Self.number(bytes, line.value) else {
                self = .invalid
                return
            }
            self = .left(number)
        }
    }

    /// Returns the value to forward, if there is one. A number beyond 64 bits becomes the greatest one.
    static func reduced(_ value: ByteRange, in bytes: Span<UInt8>) -> UInt64? {
        number(bytes, value).map { $0 &- min($0, 1) }
    }

    private static func number(_ bytes: Span<UInt8>, _ value: ByteRange) -> UInt64? {
        if let number = bytes.decimal(value) { return number }
        guard !value.isEmpty, value.end <= bytes.count else { return nil }
        for index in value.bounds where bytes[index] &- 0x30 > 9 { return nil }
        return .max
    }
}
