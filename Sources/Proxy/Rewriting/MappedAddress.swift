// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import HTTPWire

/// An address at an upstream, and the local address that leads to it: the reverse of a route.
struct MappedAddress {
    /// The name of the upstream.
    let upstream: String
    /// The origin of the upstream.
    let origin: Origin
    /// Other names that the upstream may use for itself, because it received the caller's `Host`.
    var aliases: [Origin] = []
    /// The path of the upstream's `url`, without a trailing slash.
    let base: [UInt8]
    /// The prefix that `strip-prefix` removes, without a trailing slash.
    let prefix: [UInt8]
    /// Only host name that leads to the address; `nil` for the one that the caller used.
    var host: String?

    /// True if paths are the same on both sides.
    var keepsPaths: Bool { base.isEmpty && prefix.isEmpty }

    /// Returns true if `origin` is that of the upstream.
    ///
    /// For HTTPS at its default port, the origin with plain HTTP counts as well: servers after a TLS terminator often
    /// do not know about TLS and name themselves so, and a caller that followed would leave the proxy and TLS at once.
    /// The reverse is not true: a caller redirected to HTTPS would be redirected in a loop.
    func isNamed(by origin: Origin) -> Bool {
        if origin == self.origin || aliases.contains(origin) { return true }
        return self.origin.scheme == .https && self.origin.port == 443 && origin.scheme == .http
            && origin.port == 80 && origin.host == self.origin.host
    }

    /// Returns the local path that leads to `path` at the upstream; `nil` outside the base path.
    func localPath(for path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard let rest = rest(of: path) else { return nil }
        // Clients remove dot segments first (RFC 3986 §5.2.4), from another path than the server means.
        guard keepsPaths || !Self.hasDotSegments(rest) else { return nil }
        return prefix + (rest.isEmpty ? [UInt8(ascii: "/")] : rest)
    }

    /// Returns the local `Path` of a cookie set for `path`; `nil` to leave it unchanged.
    ///
    /// A path that covers the whole upstream covers all that leads to the upstream locally, and not more of the listener: other
    /// paths may belong to another upstream.
    func cookiePath(for path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        // A value that is not a path means the directory of the request (RFC 6265 §5.2.4), which is right on both sides.
        guard !keepsPaths, path.first == UInt8(ascii: "/") else { return nil }
        let all = prefix.isEmpty ? [UInt8(ascii: "/")] : prefix
        if let rest = rest(of: path) { return rest.count > 1 ? prefix + rest : all }
        let folder = path.last == UInt8(ascii: "/") ? Array(path) : path + [UInt8(ascii: "/")]
        return base.starts(with: folder) ? all : nil
    }

    /// Returns the rest of `path` after the base path.
    private func rest(of path: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        guard path.starts(with: base) else { return nil }
        let rest = Array(path.dropFirst(base.count))
        return rest.isEmpty || rest[0] == UInt8(ascii: "/") ? rest : nil
    }

    private static func hasDotSegments(_ path: [UInt8]) -> Bool {
        path.split(separator: UInt8(ascii: "/")).contains { segment in
            // A longer segment than `%2e%2e` is not a dot segment, and could take long to compare.
            guard segment.count <= 6 else { return false }
            let text = String(decoding: segment, as: UTF8.self).lowercased().replacing("%2e", with: ".")
            return text == "." || text == ".."
        }
    }
}

/// A reference in a response that is a path or a whole address (RFC 3986 §4.1, §4.2).
struct URLReference {
    /// The origin of the path; `nil` for that of the server itself.
    let origin: Origin?
    /// The path; may be empty after an origin.
    let path: ByteRange
    /// Query and fragment, with their delimiters.
    let tail: ByteRange

    /// Parses the reference in `range`. `nil` for other references: relative to a page, which is valid on both sides; of another
    /// scheme; with user info; or with an authority that readers interpret in two ways.
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
    /// Parses an authority into an origin, with its default port written or not.
    init?(scheme: Scheme, _ bytes: Span<UInt8>, _ range: ByteRange) {
        guard let authority = Authority(bytes, range) else { return nil }
        var host = bytes.text(authority.host)
        if host.hasPrefix("[") { host = String(host.dropFirst().dropLast()) }
        self.init(scheme: scheme, host: host, port: authority.port)
    }
}
