// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// Reason why an address that a server wrote cannot be used.
public struct AddressFault: Error, Sendable, Equatable {
    /// Reason as the end of a sentence; it contains no text of the address.
    public let reason: String

    init(_ reason: String) { self.reason = reason }
}

extension WebURL {
    /// Reads an address that a server wrote, as browsers do (WHATWG URL §4.4); relative ones against `base`.
    ///
    /// Blanks around it, tabs and line breaks are removed, a backslash is a slash, dot segments are resolved, and what no
    /// request target has is percent-encoded, byte by byte. The fragment is dropped, and so is user information, which no
    /// request has; without a base it is refused. Throws for another scheme, and for a host or port that cannot be used.
    public init(reading bytes: some Collection<UInt8>, at base: WebURL? = nil) throws(AddressFault) {
        var reader = AddressReader(bytes)
        self = try reader.address(at: base)
    }

    /// Resolves `reference` against this address, as browsers do (WHATWG URL §4.4).
    ///
    /// `nil` if the result is not a supported address.
    public func resolving(_ reference: String) -> WebURL? { try? WebURL(reading: reference.utf8, at: self) }
}

/// Reader of one address by the WHATWG's URL standard, for the schemes `http` and `https`.
///
/// It visits each byte a bounded number of times.
private struct AddressReader {
    private let bytes: ArraySlice<UInt8>
    private var position: Int
    /// True if there is a base: a page or a response has the address.
    private var isRelated = false

    /// Creates a reader of `bytes` without blanks around them, tabs and line breaks.
    init(_ bytes: some Collection<UInt8>) {
        var text = Array(bytes).trimmed { $0 <= 0x20 }
        if text.contains(where: Self.isRemoved) { text = text.filter { !Self.isRemoved($0) }[...] }
        // The fragment begins at the first `#`, wherever that is.
        self.bytes = text.prefix { $0 != UInt8(ascii: "#") }
        position = self.bytes.startIndex
    }

    mutating func address(at base: WebURL?) throws(AddressFault) -> WebURL {
        isRelated = base != nil
        if let name = schemeName() {
            guard let scheme = Origin.Scheme(rawValue: name) else {
                throw AddressFault("has another scheme than http and https")
            }
            // `https:next` is relative on a page of that scheme.
            guard let base, base.origin.scheme == scheme, !bytes[position...].starts(with: "//".utf8) else {
                return try absolute(scheme)
            }
            return try relative(to: base)
        }
        guard let base else { throw AddressFault("has no scheme") }
        return try relative(to: base)
    }

    private mutating func relative(to base: WebURL) throws(AddressFault) -> WebURL {
        guard let first = next else { return base }
        if Self.isSlash(first) {
            let second = bytes.index(after: position)
            if second < bytes.endIndex, Self.isSlash(bytes[second]) { return try absolute(base.origin.scheme) }
            return rest(at: base.origin, below: [])
        }
        if first == UInt8(ascii: "?") { return WebURL(origin: base.origin, path: base.path, query: query()) }
        // The folder of the base, which may be a request's path as a caller wrote it.
        var path = AddressPath()
        path.append(base.path.utf8)
        return rest(at: base.origin, below: path.folder)
    }

    /// Reads the host and what follows, after any number of slashes.
    private mutating func absolute(_ scheme: Origin.Scheme) throws(AddressFault) -> WebURL {
        while let slash = next, Self.isSlash(slash) { position += 1 }
        let end = bytes[position...].firstIndex { Self.isSlash($0) || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
        let authority = bytes[position..<end]
        position = end
        // The last `@` ends the user information.
        let sign = authority.lastIndex(of: UInt8(ascii: "@"))
        // A document that names an address has no reason to do so; a redirect is followed as browsers do.
        guard sign == nil || isRelated else { throw AddressFault("contains user information") }
        let host = sign.map { authority[($0 + 1)...] } ?? authority
        return rest(at: try URLHost.origin(scheme, host), below: [])
    }

    /// Reads path and query.
    private mutating func rest(at origin: Origin, below folder: [[UInt8]]) -> WebURL {
        let end = bytes[position...].firstIndex(of: UInt8(ascii: "?")) ?? bytes.endIndex
        var path = AddressPath(folder)
        path.append(bytes[position..<end])
        position = end
        return WebURL(origin: origin, path: path.text, query: query())
    }

    /// Reads the query after its question mark; `nil` without one.
    private mutating func query() -> String? {
        guard next == UInt8(ascii: "?") else { return nil }
        defer { position = bytes.endIndex }
        return AddressPath.encoded(bytes[(position + 1)...]) { byte in
            byte > 0x20 && byte < 0x7F && !"\"<>'".utf8.contains(byte)
        }
    }

    /// Reads a scheme with its colon, in lower case; `nil` if the address begins otherwise.
    private mutating func schemeName() -> String? {
        guard let first = next, first.isLetter,
            let colon = bytes.firstIndex(where: { !$0.isAlphanumeric && !"+-.".utf8.contains($0) }),
            bytes[colon] == UInt8(ascii: ":")
        else { return nil }
        position = colon + 1
        return String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
    }

    private var next: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    private static func isRemoved(_ byte: UInt8) -> Bool { byte == 0x09 || byte == 0x0A || byte == 0x0D }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
}

/// Path of an address, without dot segments (WHATWG URL §4.4, path state).
private struct AddressPath {
    private var segments: [[UInt8]]

    /// Creates a path below the folder of these segments.
    init(_ folder: [[UInt8]] = []) { segments = folder }

    /// The segments before the last.
    var folder: [[UInt8]] { segments.dropLast() }

    /// The path with its slashes.
    var text: String { String(decoding: segments.flatMap { [UInt8(ascii: "/")] + $0 }, as: UTF8.self) }

    /// Appends the segments of `path`, whose first slash may be missing.
    mutating func append(_ path: some Collection<UInt8>) {
        var parts = path.split(omittingEmptySubsequences: false) { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
        if parts.count > 1, parts[0].isEmpty { parts.removeFirst() }
        for (index, part) in parts.enumerated() {
            let isLast = index == parts.count - 1
            switch Self.dots(part) {
            case 0: segments.append(Array(Self.encoded(part, keeping: Self.isKept).utf8))
            case 1: if isLast { segments.append([]) }
            default:
                _ = segments.popLast()
                if isLast { segments.append([]) }
            }
        }
    }

    /// Returns the number of dots of a dot segment, 0 for any other; `%2e` is a dot.
    private static func dots(_ segment: some Collection<UInt8>) -> Int {
        guard segment.count <= 6 else { return 0 }
        let text = String(decoding: segment, as: UTF8.self).lowercased()
        return switch text {
        case ".", "%2e": 1
        case "..", ".%2e", "%2e.", "%2e%2e": 2
        default: 0
        }
    }

    /// Returns whether a path contains `byte` as it is (path percent-encode set).
    private static func isKept(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && !"\"#<>?^`{}".utf8.contains(byte)
    }

    /// Returns `bytes` with all but the kept ones as `%XX`.
    static func encoded(_ bytes: some Collection<UInt8>, keeping isKept: (UInt8) -> Bool) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        for byte in bytes {
            if isKept(byte) { text.append(byte) } else { text += Hex.percentEncoded(byte) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
