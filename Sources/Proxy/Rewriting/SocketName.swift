// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import System

/// The address at one end of a connection.
enum SocketName: Equatable {
    /// An IPv4 address in decimal, and the port.
    case ipv4(String, port: UInt16)
    /// An IPv6 address without brackets, and the port.
    case ipv6(String, port: UInt16)
    /// A Unix socket, or a socket without an address any more.
    case nameless

    /// The other end's.
    static func peer(of descriptor: Int32) -> SocketName { SocketName(SocketAddress.peer(of: descriptor)) }

    /// Returns the name of this process's end: the address that the caller connected to, even if the listener accepts
    /// any address.
    static func local(of descriptor: Int32) -> SocketName { SocketName(SocketAddress.local(of: descriptor)) }

    /// Host and port as an address in HTTP has them (RFC 9110 §4.2.1).
    var authority: String? {
        switch self {
        case .ipv4(let host, 80): host
        case .ipv4(let host, let port): "\(host):\(port)"
        case .ipv6(let host, 80): "[\(host)]"
        case .ipv6(let host, let port): "[\(host)]:\(port)"
        case .nameless: nil
        }
    }

    private init(_ address: SocketAddress?) {
        guard let (host, port) = address?.hostAndPort else {
            self = .nameless
            return
        }
        self = host.utf8.contains(UInt8(ascii: ":")) ? .ipv6(host, port: port) : .ipv4(host, port: port)
    }
}
