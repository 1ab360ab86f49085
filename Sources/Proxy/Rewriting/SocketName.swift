// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// The address at one end of a connection.
enum SocketName: Equatable {
    /// An IPv4 address in decimal, and the port.
    case ipv4(String, port: UInt16)
    /// An IPv6 address without brackets, and the port.
    case ipv6(String, port: UInt16)
    /// A Unix socket, or a socket that cannot be asked any more.
    case nameless

    /// The other end's.
    static func peer(of descriptor: Int32) -> SocketName {
        unsafe name { unsafe getpeername(descriptor, $0, $1) }
    }

    /// Our own end's: the address that the caller connected to, also where the listener takes any.
    static func local(of descriptor: Int32) -> SocketName {
        unsafe name { unsafe getsockname(descriptor, $0, $1) }
    }

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

    private static func name(
        _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketName {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe ask($0, &length) }
        }
        guard result == 0 else { return .nameless }
        switch Int32(storage.ss_family) {
        case AF_INET:
            let (host, port) = unsafe withUnsafeBytes(of: &storage) { bytes in
                let name = unsafe bytes.loadUnaligned(as: sockaddr_in.self)
                var address = name.sin_addr
                return unsafe (text(AF_INET, &address), UInt16(bigEndian: name.sin_port))
            }
            return .ipv4(host, port: port)
        case AF_INET6:
            let (host, port) = unsafe withUnsafeBytes(of: &storage) { bytes in
                let name = unsafe bytes.loadUnaligned(as: sockaddr_in6.self)
                var address = name.sin6_addr
                return unsafe (text(AF_INET6, &address), UInt16(bigEndian: name.sin6_port))
            }
            // A socket for both sorts gets callers over IPv4 like this.
            if host.hasPrefix("::ffff:"), host.utf8.contains(UInt8(ascii: ".")) {
                return .ipv4(String(host.dropFirst(7)), port: port)
            }
            return .ipv6(host, port: port)
        default:
            return .nameless
        }
    }

    private static func text(_ family: Int32, _ address: UnsafeRawPointer) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        unsafe inet_ntop(family, address, &buffer, socklen_t(buffer.count))
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
