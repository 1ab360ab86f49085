// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// A reference in a response that names a place by its path or its whole address (RFC 3986 §4.1, §4.2).
struct PlaceReference {
    /// Whose path it is; `nil`: that of the server that says it.
    let origin: Origin?
    /// The path; may be empty behind an origin.
    let path: ByteRange
    /// Query and fragment, with their signs.
    let tail: ByteRange

    /// Reads the reference in `range`. `nil` for what is no such reference: relative to a page, which holds on either
    /// side, of another scheme, with user info, or with an authority that two readers may read in two ways.
    init?(_ bytes: Span<UInt8>, _ range: ByteRange, scheme: Origin.Scheme) {
        guard !range.isEmpty, range.end <= bytes.count else { return nil }
        var index = range.start
        var scheme: Origin.Scheme? = scheme
        if bytes[index] != UInt8(ascii: "/") {
            while index < range.end, bytes[index] != UInt8(ascii: ":") { index += 1 }
            scheme = Self.scheme(bytes, ByteRange(start: range.start, end: index))
            index += 1
        }
        guard let scheme, index < range.end else { return nil }
        if Self.isDoubleSlash(bytes, at: index, to: range.end) {
            let start = index + 2
            index = start
            while index < range.end, !Self.endsAuthority(bytes[index]) { index += 1 }
            guard let origin = Origin(scheme: scheme, bytes, ByteRange(start: start, end: index)) else { return nil }
            self.origin = origin
        } else {
            guard index == range.start else { return nil }
            origin = nil
        }
        let start = index
        while index < range.end, bytes[index] != UInt8(ascii: "?"), bytes[index] != UInt8(ascii: "#") { index += 1 }
        path = ByteRange(start: start, end: index)
        tail = ByteRange(start: index, end: range.end)
    }

    private static func scheme(_ bytes: Span<UInt8>, _ range: ByteRange) -> Origin.Scheme? {
        if bytes.matches(range, ignoringCase: "https") { return .https }
        return bytes.matches(range, ignoringCase: "http") ? .http : nil
    }

    private static func isDoubleSlash(_ bytes: Span<UInt8>, at index: Int, to end: Int) -> Bool {
        index + 1 < end && bytes[index] == UInt8(ascii: "/") && bytes[index + 1] == UInt8(ascii: "/")
    }

    private static func endsAuthority(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#")
    }
}

extension Origin {
    /// The origin of an authority, its default port written or not.
    init?(scheme: Scheme, _ bytes: Span<UInt8>, _ range: ByteRange) {
        guard let authority = Authority(bytes, range) else { return nil }
        var host = bytes.text(authority.host)
        if host.hasPrefix("[") { host = String(host.dropFirst().dropLast()) }
        self.init(scheme: scheme, host: host, port: authority.port)
    }
}
