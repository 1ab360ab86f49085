// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Glibc
package import HTTPWire

/// The host names that a listener serves; by default, local ones only.
///
/// A page on another site can make a browser resolve that site's name to 127.0.0.1 (DNS rebinding), but cannot make it send
/// another `Host`. So a name that is neither loopback nor configured is refused.
package struct HostPolicy: Sendable {
    private let names: Set<String>
    /// The names as bytes. Almost every request has one of them, and needs no string.
    private let spelled: SegmentTree

    /// Accepts the loopback names, and `names` (host names or addresses, in any case, without port).
    package init(names: some Sequence<String> = []) {
        var all: Set<String> = ["localhost", "127.0.0.1", "[::1]"]
        for name in names { all.insert(Self.canonical(name)) }
        self.names = all
        var spelled = SegmentTree()
        for name in all { _ = spelled.add(name.utf8.span, below: 0) }
        self.spelled = spelled
    }

    /// Returns true if a request for `authority` (host and optional port, in `bytes`) is served. The port is not compared: a
    /// forwarded port, for example of a container, has another number.
    package func accepts(_ authority: ByteRange, in bytes: Span<UInt8>) -> Bool {
        guard let parsed = Authority(bytes, authority) else { return false }
        return accepts(host: parsed.host, in: bytes)
    }

    /// Returns true if a request for `host`, without a port, is served.
    func accepts(host: ByteRange, in bytes: Span<UInt8>) -> Bool {
        let spelling = bytes.extracting(host.bounds)
        return spelled.child(of: 0, for: spelling, lowercasing: true) != nil || accepts(host: bytes.text(host))
    }

    /// Returns true if the host name is served. Subdomains of `localhost` are loopback names (RFC 6761 §6.3), as are all
    /// addresses of 127.0.0.0/8 (RFC 1122 §3.2.1.3).
    package func accepts(host: String) -> Bool {
        let name = Self.canonical(host)
        return names.contains(name) || name.hasSuffix(".localhost") || Self.isLoopbackAddress(name)
    }

    /// Returns the canonical form of a host name: lower case, no trailing dot, an IPv6 address in brackets and in its shortest
    /// spelling (RFC 5952).
    static func canonical(_ host: String) -> String {
        var name = host.lowercased()
        if name.hasSuffix("."), name.utf8.count > 1 { name.removeLast() }
        guard name.utf8.contains(UInt8(ascii: ":")) else { return name }
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        let address = isBracketed ? name.dropFirst().dropLast() : name[...]
        return "[\(IPv6Address(address)?.description ?? String(address))]"
    }

    /// Returns true for four plain numbers only: a resolver may take `127.1` or `2130706433` for an address, but they are names.
    private static func isLoopbackAddress(_ name: String) -> Bool {
        guard name.hasPrefix("127.") else { return false }
        var address = in_addr()
        return unsafe inet_pton(AF_INET, name, &address) == 1
    }
}
