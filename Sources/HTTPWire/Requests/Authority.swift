// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// `uri-host [ ":" port ]` as `Host` and request targets hold it (RFC 9110 section 7.2, RFC 3986 section 3.2).
///
/// Stricter than the grammar on purpose: a name is letters, digits and `-._~`, because nothing else resolves and because
/// percent signs and sub-delimiters in hosts are read differently by different servers. No user info, no zone, no empty
/// host (RFC 9110 section 4.2.1). An empty port is the default one (RFC 3986 section 3.2.3).
public struct Authority: Equatable, Sendable {
    /// The host; an IPv6 address with its brackets.
    public let host: ByteRange
    /// The port, where one is written.
    public let port: UInt16?

    /// Parses `range` of `bytes`; nil where it is no authority.
    public init?(_ bytes: Span<UInt8>, _ range: ByteRange) {
        guard !range.isEmpty, range.end <= bytes.count else { return nil }
        var end = range.start
        if bytes[end] == UInt8(ascii: "[") {
            while end < range.end, bytes[end] != UInt8(ascii: "]") { end += 1 }
            guard end < range.end, Authority.isIPv6(bytes, from: range.start + 1, to: end) else { return nil }
            end += 1
        } else {
            while end < range.end, ByteClass.unreserved.contains(bytes[end]) { end += 1 }
            guard end > range.start else { return nil }
        }
        host = ByteRange(start: range.start, end: end)
        guard end < range.end else {
            port = nil
            return
        }
        guard bytes[end] == UInt8(ascii: ":"), range.end - end <= 6 else { return nil }
        var value = 0
        for index in end + 1..<range.end {
            guard bytes[index].isDigit else { return nil }
            value = value * 10 + Int(bytes[index] &- 0x30)
        }
        guard let number = UInt16(exactly: value) else { return nil }
        port = end + 1 == range.end ? nil : number
    }

    /// RFC 3986 section 3.2.2, without zones: eight groups, or fewer with one `::`; the last two may be an IPv4 address.
    private static func isIPv6(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        var index = start
        var groups = 0
        var compressed = false
        if end - start >= 2, bytes[start] == UInt8(ascii: ":") {
            guard bytes[start + 1] == UInt8(ascii: ":") else { return false }
            compressed = true
            index += 2
        }
        while index < end {
            let groupStart = index
            while index < end, index - groupStart < 5, bytes[index].hexadecimalValue != nil { index += 1 }
            if index < end, bytes[index] == UInt8(ascii: ".") {
                guard isIPv4(bytes, from: groupStart, to: end) else { return false }
                groups += 2
                return compressed ? groups <= 7 : groups == 8
            }
            guard (1...4).contains(index - groupStart) else { return false }
            groups += 1
            guard groups <= 8 else { return false }
            guard index < end else { break }
            guard bytes[index] == UInt8(ascii: ":"), index + 1 < end else { return false }
            index += 1
            if bytes[index] == UInt8(ascii: ":") {
                guard !compressed else { return false }
                compressed = true
                index += 1
            }
        }
        return compressed ? groups <= 7 : groups == 8
    }

    /// Four decimal octets without leading zeros (RFC 3986 section 3.2.2).
    private static func isIPv4(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> Bool {
        var index = start
        for octet in 0..<4 {
            if octet > 0 {
                guard index < end, bytes[index] == UInt8(ascii: ".") else { return false }
                index += 1
            }
            let first = index
            var value = 0
            while index < end, index - first < 3, bytes[index].isDigit {
                value = value * 10 + Int(bytes[index] &- 0x30)
                index += 1
            }
            guard index > first, value <= 255 else { return false }
            guard index - first == 1 || bytes[first] != 0x30 else { return false }
        }
        return index == end
    }
}
