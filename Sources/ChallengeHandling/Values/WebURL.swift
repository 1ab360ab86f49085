// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// An absolute `http` or `https` address, split into origin and request target.
///
/// The target is stored as written, without decoding or removal of dot segments, so a request's target is forwarded
/// unchanged. Only addresses that a server wrote are normalized (`init(reading:at:)`). No address can split a request:
/// whatever it is made of, its target has only bytes of a request target (RFC 9112 §3.2).
public struct WebURL: Sendable, Hashable {
    /// The origin.
    public let origin: Origin
    /// The path, with its leading `/`.
    public let path: String
    /// The text after the `?`, if there is one.
    public let query: String?

    /// Creates an address from its parts. An empty path becomes `/`, and another one gets a missing `/` in front.
    ///
    /// Bytes that would end the path, the query or the request line are percent-encoded, as browsers do: controls,
    /// spaces, `#`, bytes above 0x7E, and `?` in a path. The path `*` (OPTIONS) stays.
    public init(origin: Origin, path: String, query: String? = nil) {
        self.origin = origin
        self.path = Self.encoded(path: path)
        self.query = query.map { Self.encoded($0) { ByteClass.target.contains($0) } }
    }

    /// Parses an absolute address of a configuration or of our own, without its fragment. `nil` for another scheme, user
    /// info, no valid host or port, or a byte that is not valid in a URI (RFC 3986 §2).
    public init?(_ text: some StringProtocol) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3C && $0 != 0x3E })
        else { return nil }
        let text = String(text)
        guard let separator = text.schemeEnd,
            let scheme = Origin.Scheme(rawValue: text[..<separator].lowercased())
        else { return nil }
        let rest = text[separator...].dropFirst(3)
        let authorityEnd = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        let authority = rest[..<authorityEnd].utf8
        guard !authority.contains(where: { "@%".utf8.contains($0) }),
            let origin = try? URLHost.origin(scheme, authority)
        else { return nil }
        var reference = rest[authorityEnd...]
        if let fragment = reference.utf8.firstIndex(of: UInt8(ascii: "#")) { reference = reference[..<fragment] }
        let question = reference.utf8.firstIndex(of: UInt8(ascii: "?"))
        // Some read a backslash of a path as a slash; in a query, browsers send it as it is.
        guard !reference[..<(question ?? reference.endIndex)].utf8.contains(0x5C) else { return nil }
        self.init(
            origin: origin,
            path: String(reference[..<(question ?? reference.endIndex)]),
            query: question.map { String(reference[reference.index(after: $0)...]) })
    }

    /// Path and query as in a request line (RFC 9112 §3.2.1).
    public var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The address without its query.
    package var withoutQuery: WebURL { query == nil ? self : WebURL(origin: origin, path: path) }

    /// Returns this address with `suffix` appended to its path, without a query. Exactly one slash separates them.
    public func appending(path suffix: String) -> WebURL {
        let base = path.hasSuffix("/") ? String(path.dropLast()) : path
        return WebURL(origin: origin, path: suffix.hasPrefix("/") ? base + suffix : "\(base)/\(suffix)")
    }

    /// Returns this address with the path of `target` appended to its path, and the query of `target`.
    package func appending(target: String) -> WebURL {
        guard let question = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return appending(path: target) }
        let path = appending(path: String(target[..<question])).path
        return WebURL(origin: origin, path: path, query: String(target[target.utf8.index(after: question)...]))
    }

    private static func encoded(path: String) -> String {
        if path.isEmpty || path == "*" { return path.isEmpty ? "/" : path }
        let text = encoded(path) { ByteClass.target.contains($0) && $0 != UInt8(ascii: "?") }
        return text.utf8.first == UInt8(ascii: "/") ? text : "/" + text
    }

    /// Returns `text` with the other bytes as `%XX`.
    private static func encoded(_ text: String, keeping isKept: (UInt8) -> Bool) -> String {
        if text.utf8.allSatisfy(isKept) { return text }
        let bytes = text.utf8.flatMap { isKept($0) ? [$0] : Hex.percentEncoded($0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension WebURL: CustomStringConvertible {
    /// The whole address. Queries can contain secrets: log `origin` and `path` instead.
    public var description: String { "\(origin)\(target)" }
}

extension String {
    /// The index of the first `://`.
    fileprivate var schemeEnd: Index? {
        utf8.indices.first { utf8[$0] == UInt8(ascii: ":") && utf8[$0...].starts(with: "://".utf8) }
    }
}

/// Scheme, host and port, to which a secret is bound (RFC 6454 §4).
public struct Origin: Sendable, Hashable {
    /// Supported scheme of requests.
    public enum Scheme: String, Sendable, Hashable {
        /// Plain HTTP, default port 80.
        case http
        /// HTTP over TLS, default port 443.
        case https

        /// The default port.
        public var defaultPort: UInt16 { self == .http ? 80 : 443 }
    }

    /// The scheme.
    public let scheme: Scheme
    /// The host in lower case, without a trailing dot. An IPv6 address has no brackets and is written as in RFC 5952.
    public let host: String
    /// The port.
    public let port: UInt16

    /// Creates an origin with the canonical form of `host`.
    public init(scheme: Scheme, host: String, port: UInt16? = nil) {
        var canonical = host.lowercased()
        if canonical.hasSuffix("."), canonical.count > 1 { canonical.removeLast() }
        if canonical.utf8.contains(UInt8(ascii: ":")), let address = IPv6Address(canonical[...]) {
            canonical = address.description
        }
        self.scheme = scheme
        self.host = canonical
        self.port = port ?? scheme.defaultPort
    }

    /// Host and port as in a `Host` field, without the default port (RFC 9110 §7.2).
    public var authority: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == scheme.defaultPort ? name : "\(name):\(port)"
    }

    /// True if the host is this machine by a local name or a loopback address.
    public var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        // Only the usual form: some parsers read a leading 0 as octal, and 08 as a name to resolve.
        return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0).map(String.init) == String($0) }
    }
}

extension Origin: CustomStringConvertible {
    /// `https://host:port` without the default port.
    public var description: String { "\(scheme.rawValue)://\(authority)" }
}
