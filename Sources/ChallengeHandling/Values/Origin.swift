// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// Scheme, host and port: what a secret is bound to (RFC 6454 §4).
public struct Origin: Sendable, Hashable {
    /// The two schemes that requests go out by.
    public enum Scheme: String, Sendable, Hashable {
        /// Plain HTTP, default port 80.
        case http
        /// HTTP over TLS, default port 443.
        case https

        /// The port meant where none is written.
        public var defaultPort: UInt16 { self == .http ? 80 : 443 }
    }

    /// The scheme.
    public let scheme: Scheme
    /// The host in lower case, without a trailing dot; an IPv6 address without its brackets, as RFC 5952 writes it.
    public let host: String
    /// The port.
    public let port: UInt16

    /// An origin; `host` is made canonical.
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

    /// Host and port as a `Host` field writes them: the default port is left out (RFC 9110 §7.2).
    public var authority: String {
        let name = host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]" : host
        return port == scheme.defaultPort ? name : "\(name):\(port)"
    }

    /// Whether the host is this machine by its name or a loopback address.
    public var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "::1" { return true }
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        // As it is always written: what begins with 0 is octal to some, and 08 a name to be looked up.
        return octets.count == 4 && octets[0] == "127" && octets.allSatisfy { UInt8($0).map(String.init) == String($0) }
    }
}

extension Origin: CustomStringConvertible {
    /// `https://host:port`, the default port left out.
    public var description: String { "\(scheme.rawValue)://\(authority)" }
}
