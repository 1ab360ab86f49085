// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// What a request line asks for (RFC 9112 section 3.2), as ranges.
///
/// Only what RFC 3986 allows in a path is taken: a client has to percent-encode everything else, and what one server
/// takes as it is another decodes. So `[`, `]`, `{`, `}`, `|`, `^`, `\`, quotes and bytes above 0x7F are refused there,
/// and every percent sign has two hexadecimal digits. In a query, which routes nothing, the signs that browsers leave as
/// they are go as they came: `?ids[]=1` is what half of the web sends.
public struct RequestTarget: Equatable, Sendable {
    /// The four forms of a target.
    public enum Form: Sendable {
        /// A path: the usual form.
        case origin
        /// A whole URL, as sent to a proxy.
        case absolute
        /// Host and port, with CONNECT only.
        case authority
        /// `*`, with OPTIONS only.
        case asterisk
    }

    /// Which form it has.
    public let form: Form
    /// All of the target.
    public let range: ByteRange
    /// Host and port in the absolute and authority forms.
    public let authority: ByteRange?
    /// Path and query as they came. In the absolute form the path may be missing (`http://host`, `http://host?a`): then
    /// the path is a slash, or the asterisk for OPTIONS without a query (RFC 9112 section 3.2.4). Empty in the others.
    public let pathAndQuery: ByteRange
    /// The path alone.
    public let path: ByteRange
    /// True if an absolute target says `https`.
    public let isSecure: Bool

    /// An empty target, before there is one.
    static var none: RequestTarget {
        RequestTarget(
            form: .origin, range: .empty, authority: nil, pathAndQuery: .empty, path: .empty, isSecure: false)
    }
}

extension RequestTarget {
    /// Parses the target that starts at `start`; it ends before the first space, at `range.end`.
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
            // RFC 9112 section 3.2.4: for OPTIONS only.
            guard method == .options else { throw .targetFormMismatch }
            let range = ByteRange(start: start, end: start + 1)
            self.init(
                form: .asterisk, range: range, authority: nil, pathAndQuery: .empty, path: .empty, isSecure: false)
        } else {
            try self.init(absoluteForm: bytes, from: start, to: end)
        }
    }

    /// RFC 9112 section 3.2.3 and RFC 9110 section 9.3.6: a host and a port, which has no default.
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

    /// RFC 9112 section 3.2.2, for the schemes `http` and `https`: no others can be meant here.
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
        // Refuses user info (RFC 9110 section 4.2.4) and an empty host (section 4.2.1).
        guard Authority(bytes, authority) != nil else { throw .targetAuthorityInvalid }
        let path = try RequestTarget.path(bytes, from: authorityEnd, to: end)
        self.init(
            form: .absolute, range: ByteRange(start: start, end: path.whole.end), authority: authority,
            pathAndQuery: path.whole, path: path.path, isSecure: isSecure)
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") || byte == .space
    }

    /// `path [ "?" query ]` from `start` to the space that must follow.
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

    /// How far from `start` there are only bytes that a path and its query may have, and where the path ends (RFC 3986 sections 3.3 and
    /// 3.4); nil where a `%` is followed by anything but two digits.
    static func scan(_ bytes: Span<UInt8>, from start: Int, to end: Int) -> (end: Int, pathEnd: Int)? {
        var index = start
        var pathEnd: Int?
        var allowed = ByteClass.path
        while index < end {
            let byte = bytes[index]
            if allowed.contains(byte) {
                index += 1
            } else if byte == UInt8(ascii: "%") {
                guard index + 2 < end, bytes[index + 1].hexadecimalValue != nil,
                    bytes[index + 2].hexadecimalValue != nil
                else { return nil }
                index += 3
            } else if byte == UInt8(ascii: "?") {
                if pathEnd == nil { pathEnd = index }
                allowed = .query
                index += 1
            } else {
                break
            }
        }
        return (index, pathEnd ?? index)
    }
}
