// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import Glibc
internal import SettingsReading

/// Address to accept connections at: `HOST:PORT`, `unix:/path[?mode=0660]` or `systemd:NAME`.
package enum ListenAddress: Sendable, Hashable {
    /// A socket that systemd passes under this `FileDescriptorName=`.
    case systemd(name: String)
    /// An IPv4 address, an IPv6 address without brackets, or `localhost`. For port 0 the kernel chooses a port.
    case tcp(host: String, port: UInt16)
    /// A Unix socket at an absolute path, with its permission bits if they are written.
    case unix(path: String, mode: UInt32?)

    /// True if only this machine can connect. A socket from systemd is unknown here and counts as local.
    package var isLocal: Bool {
        switch self {
        case .systemd, .unix: true
        case .tcp(let host, _): host == "localhost" || host == "::1" || host.hasPrefix("127.")
        }
    }
}

/// Reason why a text is not a listen address.
package struct ListenAddressError: Error, Sendable, Hashable {
    /// Fault and remedy.
    package var reason: String
}

extension ListenAddress {
    // sockaddr_un has 108 bytes, the last of which is the terminator (unix(7)).
    private static let longestUnixPath = 107

    /// Parses an address of the configuration.
    package init(parsing text: String) throws(ListenAddressError) {
        if text.hasPrefix("unix:") {
            self = try Self.unix(parsing: text.dropFirst(5))
        } else if text.hasPrefix("systemd:") {
            self = try Self.systemd(parsing: text.dropFirst(8))
        } else {
            self = try Self.tcp(parsing: text)
        }
    }

    private static func unix(parsing text: Substring) throws(ListenAddressError) -> ListenAddress {
        let question = text.firstIndex(of: "?") ?? text.endIndex
        let path = text[..<question]
        guard path.hasPrefix("/"), !path.hasSuffix("/") else {
            throw ListenAddressError(reason: "the path of a Unix socket is absolute: unix:/run/countersign/http.sock")
        }
        guard path.utf8.count <= longestUnixPath, !path.utf8.contains(0) else {
            throw ListenAddressError(reason: "the path of a Unix socket has at most \(longestUnixPath) bytes")
        }
        guard question < text.endIndex else { return .unix(path: String(path), mode: nil) }
        let option = text[question...].dropFirst()
        let digits = option.dropFirst(5)
        guard option.hasPrefix("mode="), digits.utf8.allSatisfy({ (0x30...0x37).contains($0) }),
            let mode = UInt32(digits, radix: 8), mode <= 0o777
        else {
            throw ListenAddressError(reason: "the ? must be followed by mode= and octal digits: ?mode=0660")
        }
        return .unix(path: String(path), mode: mode)
    }

    /// Parses a name as in systemd.socket(5): 1 to 255 characters, no control characters, no colons.
    private static func systemd(parsing text: Substring) throws(ListenAddressError) -> ListenAddress {
        guard (1...255).contains(text.utf8.count), text.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x3A })
        else {
            throw ListenAddressError(reason: "systemd: must be followed by the FileDescriptorName= of a socket unit")
        }
        return .systemd(name: String(text))
    }

    private static func tcp(parsing text: String) throws(ListenAddressError) -> ListenAddress {
        guard let colon = text.lastIndex(of: ":") else {
            let port = UInt16(text).map { "; did you mean \"127.0.0.1:\($0)\"?" } ?? ""
            throw ListenAddressError(
                reason: "\"\(text)\" is not an address (use HOST:PORT, unix:/path[?mode=0660] or systemd:NAME)\(port)")
        }
        let digits = text[colon...].dropFirst()
        guard digits.utf8.allSatisfy(\.isDigit), let port = UInt16(digits) else {
            throw ListenAddressError(reason: "\"\(digits)\" is not a port (a number from 0 to 65535)")
        }
        let host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            let address = String(host.dropFirst().dropLast()).lowercased()
            if isAddress(address, family: AF_INET6) { return .tcp(host: address, port: port) }
        }
        if host == "localhost" || isAddress(String(host), family: AF_INET) {
            return .tcp(host: String(host), port: port)
        }
        throw ListenAddressError(
            reason: "\"\(host)\" is not an IP address (use 127.0.0.1, [::1], another one of this machine, or localhost)"
        )
    }

    private static func isAddress(_ text: String, family: Int32) -> Bool {
        var storage = in6_addr()
        return unsafe inet_pton(family, text, &storage) == 1
    }
}

extension ListenAddress: CustomStringConvertible {
    /// Text of the address in the configuration.
    package var description: String {
        switch self {
        case .systemd(let name): "systemd:\(name)"
        case .tcp(let host, let port): host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, nil): "unix:\(path)"
        case .unix(let path, let mode?): "unix:\(path)?mode=0\(String(mode, radix: 8))"
        }
    }
}

extension ValueForm where Content == ListenAddress {
    static let listenAddress = ValueForm("address", plural: "addresses") { $0.listenAddress() }
}

extension Value {
    func listenAddress() -> ListenAddress? {
        guard let text = word() else { return nil }
        do {
            return try ListenAddress(parsing: text)
        } catch {
            report(error.reason)
            return nil
        }
    }
}
