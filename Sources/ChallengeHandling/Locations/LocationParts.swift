// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// The parts of `[scheme://][user[:password]@]host[:port][/path]`, split but not yet judged. Patterns and URIs are
/// split alike; query and fragment are dropped, and so are trailing slashes.
struct LocationParts {
    /// What the scheme says where no port is written; 80 where there is no scheme either.
    var defaultPort: UInt16
    /// What stands before the `@`; `nil` where nothing does.
    var userInfo: (user: Substring, password: Substring?)?
    /// Without a trailing dot; an IPv6 address with its brackets.
    var host: Substring
    /// The digits, or whatever stands there; `nil` where nothing does.
    var port: Substring?
    /// The path split at its slashes, without the empty segments at its end.
    var segments: [Substring]

    init(_ text: some StringProtocol) throws(LocationError) {
        let text = Substring(String(text))
        guard text.utf8.allSatisfy(Self.isURIByte) else {
            throw LocationError(reason: "holds a character that no URI holds; percent-encode it")
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
                throw LocationError(reason: "has two @ signs; write the one that is part of a password as %40")
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

    /// The port meant, where it is written in digits or not at all.
    func portNumber() throws(LocationError) -> UInt16 {
        guard let port, !port.isEmpty else { return defaultPort }
        guard port.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt16(port), number > 0 else {
            throw LocationError(reason: "the port is not a number from 1 to 65535")
        }
        return number
    }

    /// The labels of `host` in lower case, each of the signs that host names are made of.
    static func labels(of host: Substring) throws(LocationError) -> [String] {
        if let address = IPv6Address(host.dropFirst().dropLast()), host.hasPrefix("[") { return ["[\(address)]"] }
        var labels: [String] = []
        for label in host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false) {
            guard !label.isEmpty else { throw LocationError(reason: "the host has an empty label") }
            guard label.allSatisfy(Self.isHostByte) else {
                throw LocationError(
                    reason: label.contains(UInt8(ascii: "*"))
                        ? "a * in the host must be its whole first label"
                        : "the host holds a sign that no host name has")
            }
            labels.append(Substring(label).lowercased())
        }
        return labels
    }

    /// `text` with percent-encoded unreserved characters decoded and the digits of all others in upper case
    /// (RFC 3986 §6.2.2.1 and §6.2.2.2). A percent sign of its own becomes `%25`: decoded digits behind it, as in `%%34%31`,
    /// would else make another encoded character.
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
            guard digits.count == 2, digits.allSatisfy(Self.isHexDigit),
                let decoded = UInt8(String(decoding: digits, as: UTF8.self), radix: 16)
            else {
                output += Array("%25".utf8)
                continue
            }
            rest.removeFirst(2)
            if Self.isUnreserved(decoded) {
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
        default: throw LocationError(reason: "the scheme is none of http, https, ws and wss")
        }
    }

    /// `@host` has no user info: nobody is named there.
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
                throw LocationError(reason: "there is no IPv6 address between the brackets")
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

    /// RFC 3986 §2.
    private static func isURIByte(_ byte: UInt8) -> Bool {
        switch byte {
        case ...0x20, 0x7F..., UInt8(ascii: "\""), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\\"): false
        default: true
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// RFC 3986 §2.3.
    private static func isUnreserved(_ byte: UInt8) -> Bool {
        isHostByte(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "~")
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
    }
}
