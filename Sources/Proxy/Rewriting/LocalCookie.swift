// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// Rewrites cookies between an upstream and a caller over plain HTTP at a local name.
///
/// With the attributes that an upstream sets for its own name, the caller would drop them (RFC 6265 §5.3):
///
/// - A `Domain` that covers the upstream is removed: the cookie is for the local name only.
///
/// - `Path` becomes the local path.
///
/// - `Secure` is removed, and with it `SameSite=None` and `Partitioned`, which need it.
///
/// - A name with the prefix `__Host-`, `__Secure-` or `__Http-` is refused without `Secure`, and not sent over plain HTTP with
/// it. So it gets another prefix on the way to the caller and loses that prefix on the way back.
enum LocalCookie {
    /// The local prefix of a name with a special prefix.
    private static let marker: StaticString = "countersign-__"

    /// Returns the value of a `Set-Cookie` for the caller; `nil` if unchanged.
    static func local(_ cookie: Span<UInt8>, from place: MappedAddress) -> [UInt8]? {
        let parts = split(cookie)
        guard let pair = parts.first else { return nil }
        let keepsDomain = !parts.dropFirst().contains { isDomain($0, in: cookie) } || !covers(place, parts, cookie)
        var isChanged = false
        var local: [UInt8] = []
        if hasPrefix(cookie, pair) {
            local += bytes(of: marker).dropLast(2)
            isChanged = true
        }
        local += cookie.copy(pair)
        for part in parts.dropFirst() {
            let attribute = Attribute(cookie, part)
            switch attribute.kind {
            case .secure, .partitioned, .crossSite:
                isChanged = true
                continue
            case .domain where !keepsDomain:
                isChanged = true
                continue
            case .path:
                guard let path = place.cookiePath(for: cookie.copy(attribute.value)) else { break }
                isChanged = true
                local += [semicolon] + cookie.copy(ByteRange(start: part.start, end: attribute.value.start)) + path
                continue
            case .domain, .other:
                break
            }
            local.append(semicolon)
            local += cookie.copy(part)
        }
        return isChanged ? local : nil
    }

    /// Returns the value of a caller's `Cookie` for the upstream; `nil` if unchanged.
    static func restored(_ cookies: Span<UInt8>) -> [UInt8]? {
        guard cookies.contains(marker) else { return nil }
        var restored: [UInt8] = []
        for (number, pair) in split(cookies).enumerated() {
            if number > 0 { restored.append(semicolon) }
            let name = Attribute.trimmed(cookies, pair)
            let isMarked = hasPrefix(cookies, ByteRange(start: min(name.start + 12, name.end), end: name.end))
            if isMarked, cookies.matches(ByteRange(start: name.start, end: name.start + 14), exactly: marker) {
                restored += cookies.copy(ByteRange(start: pair.start, end: name.start))
                restored += cookies.copy(ByteRange(start: name.start + 12, end: pair.end))
            } else {
                restored += cookies.copy(pair)
            }
        }
        return restored
    }

    // MARK: Names

    /// Returns true if a cookie's name has a special prefix (RFC 6265bis §4.1.3), compared without case.
    private static func hasPrefix(_ bytes: Span<UInt8>, _ pair: ByteRange) -> Bool {
        func begins(_ prefix: StaticString) -> Bool {
            let end = pair.start + prefix.utf8CodeUnitCount
            return end <= pair.end && bytes.matches(ByteRange(start: pair.start, end: end), ignoringCase: prefix)
        }
        return begins("__host-") || begins("__secure-") || begins("__http-")
    }

    // MARK: Attributes

    private static func isDomain(_ part: ByteRange, in cookie: Span<UInt8>) -> Bool {
        Attribute(cookie, part).kind == .domain
    }

    /// Returns true if the effective domain, the last one that is not empty (RFC 6265 §5.3), covers the upstream.
    private static func covers(_ place: MappedAddress, _ parts: [ByteRange], _ cookie: Span<UInt8>) -> Bool {
        var domain: String?
        for part in parts.dropFirst() {
            let attribute = Attribute(cookie, part)
            if attribute.kind == .domain, !attribute.value.isEmpty {
                domain = cookie.text(attribute.value).lowercased()
            }
        }
        guard var domain else { return false }
        if domain.hasPrefix(".") { domain.removeFirst() }
        let host = place.origin.host
        if host == domain { return true }
        let isAddress = host.utf8.allSatisfy { $0 &- 0x30 < 10 || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ":") }
        return !domain.isEmpty && !isAddress && host.hasSuffix(".\(domain)")
    }

    private struct Attribute {
        enum Kind { case crossSite, domain, other, partitioned, path, secure }

        var kind = Kind.other
        /// The value without white space around it.
        var value: ByteRange

        init(_ bytes: Span<UInt8>, _ part: ByteRange) {
            var sign = part.start
            while sign < part.end, bytes[sign] != UInt8(ascii: "=") { sign += 1 }
            let name = Self.trimmed(bytes, ByteRange(start: part.start, end: sign))
            value = Self.trimmed(bytes, ByteRange(start: min(sign + 1, part.end), end: part.end))
            if bytes.matches(name, ignoringCase: "secure") {
                kind = .secure
            } else if bytes.matches(name, ignoringCase: "partitioned") {
                kind = .partitioned
            } else if bytes.matches(name, ignoringCase: "samesite"), bytes.matches(value, ignoringCase: "none") {
                kind = .crossSite
            } else if bytes.matches(name, ignoringCase: "domain") {
                kind = .domain
            } else if bytes.matches(name, ignoringCase: "path") {
                kind = .path
            }
        }

        static func trimmed(_ bytes: Span<UInt8>, _ range: ByteRange) -> ByteRange {
            var (start, end) = (range.start, range.end)
            while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
            while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
            return ByteRange(start: start, end: end)
        }
    }

    // MARK: Bytes

    private static let semicolon = UInt8(ascii: ";")

    /// Returns the parts between semicolons, which cannot be escaped (RFC 6265 §5.2).
    private static func split(_ bytes: Span<UInt8>) -> [ByteRange] {
        var parts: [ByteRange] = []
        var start = 0
        for index in bytes.indices where bytes[index] == semicolon {
            parts.append(ByteRange(start: start, end: index))
            start = index + 1
        }
        parts.append(ByteRange(start: start, end: bytes.count))
        return parts
    }

    private static func bytes(of text: StaticString) -> [UInt8] { Array("\(text)".utf8) }
}
