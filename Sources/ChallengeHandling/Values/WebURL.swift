// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// An absolute `http` or `https` address, split into origin and request target.
///
/// The target is stored as written, without decoding or removal of dot segments, so a request's target is forwarded
/// unchanged. Only `resolving` a reference removes dot segments (RFC 3986 §5.2.4). No address can split a request:
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

    /// Parses an absolute address, without its fragment. `nil` for another scheme, user info, no host, an invalid port,
    /// or a byte that is not valid in a URI (RFC 3986 §2).
    public init?(_ text: some StringProtocol) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x3C && $0 != 0x3E && $0 != 0x5C })
        else { return nil }
        let text = String(text)
        guard let separator = text.schemeEnd,
            let scheme = Origin.Scheme(rawValue: text[..<separator].lowercased())
        else { return nil }
        let rest = text[separator...].dropFirst(3)
        let authorityEnd = rest.utf8.firstIndex { "/?#".utf8.contains($0) } ?? rest.endIndex
        guard let (host, port) = Self.hostAndPort(rest[..<authorityEnd]) else { return nil }
        var reference = rest[authorityEnd...]
        if let fragment = reference.utf8.firstIndex(of: UInt8(ascii: "#")) { reference = reference[..<fragment] }
        let question = reference.utf8.firstIndex(of: UInt8(ascii: "?"))
        self.init(
            origin: Origin(scheme: scheme, host: host, port: port),
            path: String(reference[..<(question ?? reference.endIndex)]),
            query: question.map { String(reference[reference.index(after: $0)...]) })
    }

    /// Path and query as in a request line (RFC 9112 §3.2.1).
    public var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The address without its query.
    package var withoutQuery: WebURL { query == nil ? self : WebURL(origin: origin, path: path) }

    /// Resolves `reference` against this address (RFC 3986 §5.2). `nil` if the result is not a supported address.
    public func resolving(_ reference: String) -> WebURL? {
        if reference.schemeEnd != nil, let absolute = WebURL(reference) { return absolute }
        if reference.hasPrefix("//") { return WebURL("\(origin.scheme.rawValue):\(reference)") }
        var text = Substring(reference)
        if let fragment = text.firstIndex(of: "#") { text = text[..<fragment] }
        // A colon before any slash is another scheme (`mailto:`, `javascript:`).
        if let colon = text.firstIndex(of: ":"), !text[..<colon].contains(where: { "/?".contains($0) }) { return nil }
        if text.isEmpty { return self }
        let question = text.firstIndex(of: "?")
        let query = question.map { String(text[text.index(after: $0)...]) }
        let relative = String(text[..<(question ?? text.endIndex)])
        let merged: String
        if relative.isEmpty {
            merged = path
        } else if relative.hasPrefix("/") {
            merged = Self.removingDotSegments(relative)
        } else {
            let folder = path[...(path.lastIndex(of: "/") ?? path.startIndex)]
            merged = Self.removingDotSegments(folder + relative)
        }
        return WebURL("\(origin)\(merged)\(query.map { "?\($0)" } ?? "")")
    }

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

    private static func hostAndPort(_ authority: Substring) -> (String, UInt16?)? {
        guard !authority.contains("@") else { return nil }
        var host = authority
        var port: UInt16?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { return nil }
            let address = authority[authority.index(after: authority.startIndex)..<bracket]
            // Anything else would become another host in the origin: `[8]` would read as the IPv4 address 8.
            guard IPv6Address(address) != nil else { return nil }
            let rest = authority[authority.index(after: bracket)...]
            // "[::1]:" means the default port, as below.
            if rest.isEmpty || rest == ":" { return (String(address), nil) }
            guard rest.hasPrefix(":"), let number = portNumber(rest.dropFirst()) else { return nil }
            return (String(address), number)
        }
        if let colon = authority.firstIndex(of: ":") {
            host = authority[..<colon]
            let digits = authority[authority.index(after: colon)...]
            // "host:" means the default port (RFC 3986 §3.2.3).
            if !digits.isEmpty {
                guard let number = portNumber(digits) else { return nil }
                port = number
            }
        }
        let allowed = host.utf8.allSatisfy { $0.isAlphanumeric || ".-_".utf8.contains($0) }
        // One trailing dot is dropped. More, or a leading one, make empty labels, which no name has (RFC 1035 §2.3.1).
        let labels = (host.hasSuffix(".") ? host.dropLast() : host).utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return !allowed || labels.contains(where: \.isEmpty) ? nil : (String(host), port)
    }

    private static func portNumber(_ digits: Substring) -> UInt16? {
        guard !digits.isEmpty, digits.utf8.allSatisfy(\.isDigit), let number = UInt16(digits),
            number > 0
        else { return nil }
        return number
    }

    /// Returns `path` without dot segments (RFC 3986 §5.2.4).
    private static func removingDotSegments(_ path: some StringProtocol) -> String {
        var output: [Substring] = []
        let segments = String(path).utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .dropFirst().map(Substring.init)
        for (index, segment) in segments.enumerated() {
            let isLast = index == segments.count - 1
            switch segment {
            case ".":
                if isLast { output.append("") }
            case "..":
                _ = output.popLast()
                if isLast { output.append("") }
            default:
                output.append(segment)
            }
        }
        return "/" + output.joined(separator: "/")
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
