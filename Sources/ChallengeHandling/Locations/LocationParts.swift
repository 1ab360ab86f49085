// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics

/// The unchecked parts of `[scheme://][user[:password]@]host[:port][/path]`. Patterns and URIs are split alike; query,
/// fragment, and trailing slashes are dropped.
struct LocationParts {
    /// The scheme's default port; 80 without a scheme.
    var defaultPort: UInt16
    /// The text before the `@`; `nil` without an `@`.
    var userInfo: (user: Substring, password: Substring?)?
    /// The host without a trailing dot; an IPv6 address with its brackets.
    var host: Substring
    /// The digits or other text of the port; `nil` without a port.
    var port: Substring?
    /// The path split at its slashes, without trailing empty segments.
    var segments: [Substring]

    init(_ text: some StringProtocol) throws(LocationError) {
        let text = Substring(String(text))
        guard text.utf8.allSatisfy(Self.isURIByte) else {
            throw LocationError(reason: "holds a character that is not allowed in a URI; percent-encode it")
        }
        let (defaultPort, rest) = try Self.scheme(of: text)
        let pathEnd = rest.utf8.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? rest.endIndex
        let authorityEnd = rest[..<pathEnd].utf8.firstIndex(of: UInt8(ascii: "/")) ?? pathEnd
        var authority = rest[..<authorityEnd]
        self.defaultPort = defaultPort
        if let at = authority.firstIndex(of: "@") {
            userInfo = Self.userInfo(authority[..<at])
            authority = authority[authority.index(after: at)...]
            guard !authority.contains("@") else {
                throw LocationError(reason: "has two @ characters; write the one that is part of a password as %40")
            }
        }
        (host, port) = try Self.hostAndPort(authority)
        segments = rest[authorityEnd..<pathEnd].utf8.split(
            separator: UInt8(ascii: "/"), omittingEmptySubsequences: false
        )
        .map(Substring.init)
        if !segments.isEmpty { segments.removeFirst() }
        while segments.last?.isEmpty == true { segments.removeLast() }
    }

    /// Returns the port, or the default if it is not given. Throws if it is not a number.
    func portNumber() throws(LocationError) -> UInt16 {
        guard let port, !port.isEmpty else { return defaultPort }
        guard port.utf8.allSatisfy(\.isDigit), let number = UInt16(port), number > 0 else {
            throw LocationError(reason: "the port is not a number from 1 to 65535")
        }
        return number
    }

    /// Returns the labels of `host` in lower case. Throws for characters that no host name has.
    static func labels(of host: Substring) throws(LocationError) -> [String] {
        if let address = IPv6Address(host.dropFirst().dropLast()), host.hasPrefix("[") { return ["[\(address)]"] }
        var labels: [String] = []
        for label in host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard !label.isEmpty else { throw LocationError(reason: "the host has an empty label") }
            guard label.allSatisfy(Self.isHostByte) else {
                throw LocationError(
                    reason: label.contains(UInt8(ascii: "*"))
                        ? "a * in the host must be its whole first label"
                        : "the host holds a character that is not allowed in a host name")
            }
            labels.append(Substring(label).lowercased())
        }
        return labels
    }

    /// Returns `text` with normalized percent-encoding (RFC 3986 §6.2.2.1 and §6.2.2.2). Unreserved characters are
    /// decoded, other hexadecimal digits are in upper case. A lone percent sign becomes `%25`: decoded digits after it,
    /// as in `%%34%31`, would otherwise form another encoded character.
    static func normalized(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var output: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(2)
            guard byte == UInt8(ascii: "%") else {
                output.append(byte)
                continue
            }
            guard let decoded = Hex.byte(digits.first, digits.dropFirst().first) else {
                output += Array("%25".utf8)
                continue
            }
            rest.removeFirst(2)
            if ByteClass.unreserved.contains(decoded) {
                output.append(decoded)
            } else {
                output.append(byte)
                output += digits.map { $0 >= UInt8(ascii: "a") ? $0 & 0xDF : $0 }
            }
        }
        return TextRuns.broken(String(decoding: output, as: UTF8.self))
    }
}

extension LocationParts {
    private static func scheme(of text: Substring) throws(LocationError) -> (defaultPort: UInt16, rest: Substring) {
        guard let colon = text.utf8.firstIndex(where: { ":/?#@".utf8.contains($0) }),
            text[colon...].utf8.starts(with: "://".utf8)
        else { return (80, text) }
        let rest = text[colon...].dropFirst(3)
        switch text[..<colon].lowercased() {
        case "http", "ws": return (80, rest)
        case "https", "wss": return (443, rest)
        default: throw LocationError(reason: "the scheme is not http, https, ws or wss")
        }
    }

    /// Splits user info. `@host` has none, since its user is empty.
    private static func userInfo(_ text: Substring) -> (Substring, Substring?)? {
        guard !text.isEmpty else { return nil }
        guard let colon = text.firstIndex(of: ":") else { return (text, nil) }
        return (text[..<colon], text[text.index(after: colon)...])
    }

    private static func hostAndPort(_ authority: Substring) throws(LocationError) -> (Substring, Substring?) {
        var host = authority
        var port: Substring?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else {
                throw LocationError(reason: "the bracket of the IPv6 address is not closed")
            }
            host = authority[...bracket]
            guard IPv6Address(host.dropFirst().dropLast()) != nil else {
                throw LocationError(reason: "the text between the brackets is not a valid IPv6 address")
            }
            let rest = authority[bracket...].dropFirst()
            guard rest.isEmpty || rest.hasPrefix(":") else {
                throw LocationError(reason: "only a port may follow an IPv6 address")
            }
            return (host, rest.isEmpty ? nil : rest.dropFirst())
        }
        if let colon = authority.firstIndex(of: ":") {
            host = authority[..<colon]
            port = authority[colon...].dropFirst()
        }
        if host.hasSuffix(".") { host.removeLast() }
        guard !host.isEmpty else { throw LocationError(reason: "names no host") }
        return (host, port)
    }

    /// Returns whether `byte` is valid in a URI (RFC 3986 §2).
    private static func isURIByte(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"): false
        default: true
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte.isAlphanumeric || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }
}
