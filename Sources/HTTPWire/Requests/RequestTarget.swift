// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Target of a request line (RFC 9112 §3.2), as ranges.
///
/// A path may contain what RFC 3986 allows, and what browsers and curl leave unencoded though servers read it in one way
/// only: brackets, braces, `|`, `^` and the backtick. A backslash, quotation marks, angle brackets and bytes from 0x80
/// are refused in a path, and every percent sign needs two hexadecimal digits. A query, which does not affect routing,
/// may contain all of these but controls, spaces, the backslash and `#`: `?query=up{job="x"}` and `?q=100%` are common.
public struct RequestTarget: Equatable, Sendable {
    /// Four forms of a target.
    public enum Form: Sendable {
        /// A path, the usual form.
        case origin
        /// A full URL, as sent to a proxy.
        case absolute
        /// Host and port, with CONNECT only.
        case authority
        /// `*`, with OPTIONS only.
        case asterisk
    }

    /// Form of the target.
    public let form: Form
    /// Range of the whole target.
    public let range: ByteRange
    /// Host and port in the absolute and authority forms.
    public let authority: ByteRange?
    /// Path and query as received; empty in the authority and asterisk forms.
    ///
    /// The absolute form may have no path (`http://host`, `http://host?a`): the path is then a slash, or the asterisk
    /// for OPTIONS without a query (RFC 9112 §3.2.4).
    public let pathAndQuery: ByteRange
    /// Path without the query.
    public let path: ByteRange
    /// True if an absolute target has the scheme `https`.
    public let isSecure: Bool

    /// Empty target, used before parsing.
    static var none: RequestTarget {
        RequestTarget(
            form: .origin, range: .empty, authority: nil, pathAndQuery: .empty, path: .empty, isSecure: false)
    }
}

extension RequestTarget {
    /// Parses the target at `start`; it ends before the first space, at `range.end`.
    init(
        _ bytes: Span<UInt8>, from start: Int, to end: Int, method: RequestMethod
    ) throws(WireErrorCode) {
        guard start < end, bytes[start] != .space else { throw .requestLineInvalid }
        if method == .connect {
            try self.init(authorityForm: bytes, from: start, to: end)
        } else if bytes[start] == UInt8(ascii: "/") {
            let path = try RequestTarget.path(bytes, from: start, to: end)
            self.init(
                form: .origin, range: path.whole, authority: nil, pathAndQuery: path.whole, path: path.path,
                isSecure: false)
        } else if bytes[start] == UInt8(ascii: "*"), start + 1 < end, bytes[start + 1] == .space {
            // RFC 9112 §3.2.4: for OPTIONS only.
            guard method == .options else { throw .targetFormMismatch }
            let range = ByteRange(start: start, end: start + 1)
            self.init(
                form: .asterisk, range: range, authority: nil, pathAndQuery: .empty, path: .empty, isSecure: false)
        } else {
            try self.init(absoluteForm: bytes, from: start, to: end)
        }
    }

    /// Parses a host and a port without default (RFC 9112 §3.2.3, RFC 9110 §9.3.6).
    private init(authorityForm bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        var stop = start
        while stop < end, bytes[stop] != .space { stop += 1 }
        guard stop < end else { throw .requestLineInvalid }
        let range = ByteRange(start: start, end: stop)
        guard bytes[start] != UInt8(ascii: "/"), bytes[start] != UInt8(ascii: "*") else { throw .targetFormMismatch }
        guard let authority = Authority(bytes, range), let port = authority.port, port > 0 else {
            throw .targetAuthorityInvalid
        }
        self.init(
            form: .authority, range: range, authority: range, pathAndQuery: .empty, path: .empty, isSecure: false)
    }

    /// Parses an `http` or `https` URL (RFC 9112 §3.2.2); no other scheme makes sense here.
    private init(absoluteForm bytes: Span<UInt8>, from start: Int, to end: Int) throws(WireErrorCode) {
        var authorityStart = start
        while authorityStart < end, bytes[authorityStart] != UInt8(ascii: ":"), bytes[authorityStart] != .space {
            authorityStart += 1
        }
        let scheme = ByteRange(start: start, end: authorityStart)
        let isSecure = bytes.matches(scheme, ignoringCase: "https")
        guard isSecure || bytes.matches(scheme, ignoringCase: "http"), authorityStart + 3 <= end,
            bytes.matches(ByteRange(start: authorityStart, end: authorityStart + 3), exactly: "://")
        else { throw .targetInvalid }
        authorityStart += 3
        var authorityEnd = authorityStart
        while authorityEnd < end, !RequestTarget.endsAuthority(bytes[authorityEnd]) { authorityEnd += 1 }
        let authority = ByteRange(start: authorityStart, end: authorityEnd)
        // Refuses user info (RFC 9110 §4.2.4) and an empty host (RFC 9110 §4.2.1).
        guard Authority(bytes, authority) != nil else { throw .targetAuthorityInvalid }
        let path = try RequestTarget.path(bytes, from: authorityEnd, to: end)
        self.init(
            form: .absolute, range: ByteRange(start: start, end: path.whole.end), authority: authority,
            pathAndQuery: path.whole, path: path.path, isSecure: isSecure)
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") || byte == .space
    }

    /// Parses `path [ "?" query ]` from `start` to the space that must follow.
    @inline(__always)
    private static func path(
        _ bytes: Span<UInt8>, from start: Int, to end: Int
    ) throws(WireErrorCode) -> (whole: ByteRange, path: ByteRange) {
        guard let (index, pathEnd) = scan(bytes, from: start, to: end) else { throw .targetInvalid }
        guard index < end else { throw .requestLineInvalid }
        guard bytes[index] == .space else {
            throw bytes[index] == UInt8(ascii: "#") ? .targetFragment : .targetInvalid
        }
        return (ByteRange(start: start, end: index), ByteRange(start: start, end: pathEnd))
    }

    /// Returns true if `bytes` are a path with an optional query, as a caller may send it (RFC 9112 §3.2.1).
    public static func isPathAndQuery(_ bytes: Span<UInt8>) -> Bool {
        guard bytes.count > 0, bytes[0] == UInt8(ascii: "/"),
            let (end, _) = scan(bytes, from: 0, to: bytes.count)
        else { return false }
        return end == bytes.count
    }

    /// Scans the bytes of a path and its query from `start` (RFC 3986 §3.3 and §3.4).
    ///
    /// Returns the end of these bytes and the end of the path; nil if two hexadecimal digits do not follow a `%` in the
    /// path.
    static func scan(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> (end: Int, pathEnd: Int)? {
        var index = start
        while index < end {
            let byte = bytes[index]
            if ByteClass.callersPath.contains(byte) {
                index += 1
            } else if byte == UInt8(ascii: "%") {
                guard index + 2 < end, bytes[index + 1].hexadecimalValue != nil,
                    bytes[index + 2].hexadecimalValue != nil
                else { return nil }
                index += 3
            } else {
                break
            }
        }
        let pathEnd = index
        guard index < end, bytes[index] == UInt8(ascii: "?") else { return (index, pathEnd) }
        while index < end, ByteClass.callersQuery.contains(bytes[index]) || bytes[index] >= 0x80 { index += 1 }
        return (index, pathEnd)
    }
}

/// Host and optional port of `Host` or a request target (RFC 9110 §7.2, RFC 3986 §3.2).
///
/// Deliberately stricter than the grammar `uri-host [ ":" port ]`: a name consists of letters, digits and `-._~`,
/// because nothing else resolves and because servers disagree about percent signs and sub-delimiters in hosts. No user
/// info, no zone, no empty host (RFC 9110 §4.2.1). An empty port means the default port (RFC 3986 §3.2.3).
public struct Authority: Equatable, Sendable {
    /// Host; an IPv6 address has its brackets.
    public let host: ByteRange
    /// Port, if one is written.
    public let port: UInt16?

    /// Parses `range` of `bytes`; nil if it is not a valid authority.
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

    /// Returns true for an IPv6 address (RFC 3986 §3.2.2).
    ///
    /// Eight groups, or fewer with one `::`; the last two may be an IPv4 address. No zones.
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

    /// Returns true for four decimal octets without leading zeros (RFC 3986 §3.2.2).
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
