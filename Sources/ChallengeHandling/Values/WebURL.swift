// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// An absolute `http` or `https` address, split as far as requests need it: origin and request target.
///
/// The target is kept as it was written: no decoding, no removal of dot segments, so that what goes out is what came
/// in. Only `resolving` a reference removes dot segments, as RFC 3986 §5.2.4 says.
public struct WebURL: Sendable, Hashable {
    /// Where it points.
    public let origin: Origin
    /// The path, beginning with `/`.
    public let path: String
    /// What follows the `?`, if there is one.
    public let query: String?

    /// An address from its parts; an empty path becomes `/`.
    public init(origin: Origin, path: String, query: String? = nil) {
        self.origin = origin
        self.path = path.isEmpty ? "/" : path
        self.query = query
    }

    /// Parses an absolute address. `nil` for another scheme, user info, no host, a bad port, or a byte that no URI
    /// holds (RFC 3986 §2). A fragment is dropped.
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

    /// Path and query, as a request line carries them (RFC 9112 §3.2.1).
    public var target: String { query.map { "\(path)?\($0)" } ?? path }

    /// The address without what follows its `?`.
    package var withoutQuery: WebURL { query == nil ? self : WebURL(origin: origin, path: path) }

    /// The address that `reference` means on this page (RFC 3986 §5.2), or `nil` where it is none that we speak.
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

    /// This address with `suffix` after its path (no slash is added or removed but a double one), without a query.
    public func appending(path suffix: String) -> WebURL {
        let base = path.hasSuffix("/") ? String(path.dropLast()) : path
        return WebURL(origin: origin, path: suffix.hasPrefix("/") ? base + suffix : "\(base)/\(suffix)")
    }

    private static func hostAndPort(_ authority: Substring) -> (String, UInt16?)? {
        guard !authority.contains("@") else { return nil }
        var host = authority
        var port: UInt16?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { return nil }
            let address = authority[authority.index(after: authority.startIndex)..<bracket]
            // Of anything else the origin would read as another host: of `[8]` as the IPv4 address 8.
            guard IPv6Address(address) != nil else { return nil }
            let rest = authority[authority.index(after: bracket)...]
            if rest.isEmpty { return (String(address), nil) }
            guard rest.hasPrefix(":"), let number = portNumber(rest.dropFirst()) else { return nil }
            return (String(address), number)
        }
        if let colon = authority.firstIndex(of: ":") {
            host = authority[..<colon]
            let digits = authority[authority.index(after: colon)...]
            // "host:" is the default port (RFC 3986 §3.2.3).
            if !digits.isEmpty {
                guard let number = portNumber(digits) else { return nil }
                port = number
            }
        }
        let allowed = host.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                return true
            default:
                return false
            }
        }
        // One dot at the end is dropped; more, or one at the start, make empty labels, which no name has (RFC 1035 §2.3.1).
        let labels = (host.hasSuffix(".") ? host.dropLast() : host).utf8.split(
            separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return !allowed || labels.contains(where: \.isEmpty) ? nil : (String(host), port)
    }

    private static func portNumber(_ digits: Substring) -> UInt16? {
        guard !digits.isEmpty, digits.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let number = UInt16(digits),
            number > 0
        else { return nil }
        return number
    }

    /// RFC 3986 §5.2.4.
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
    /// The whole address. Queries can hold secrets: log `origin` and `path` instead.
    public var description: String { "\(origin)\(target)" }
}

extension String {
    /// Where `://` stands first.
    fileprivate var schemeEnd: Index? {
        utf8.indices.first { utf8[$0] == UInt8(ascii: ":") && utf8[$0...].starts(with: "://".utf8) }
    }
}
