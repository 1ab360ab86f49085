// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Address of a socket as the kernel expects it: a `sockaddr` of some family.
package struct SocketAddress: Sendable {
    /// Maximum length of the path of a Unix socket: `sun_path` has 108 bytes, the last of which terminates it
    /// (unix(7)).
    package static let longestPath = 107

    private var storage = sockaddr_storage()
    private let length: socklen_t

    /// Makes the address of a Unix socket; nil if the path is empty or longer than ``longestPath``.
    package init?(unixPath path: String) {
        guard (1...Self.longestPath).contains(path.utf8.count) else { return nil }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        length = socklen_t(MemoryLayout<sockaddr_un>.size)
        store(&address)
    }

    /// The address 127.0.0.1 with that port.
    package init(loopbackPort port: UInt16) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        length = socklen_t(MemoryLayout<sockaddr_in>.size)
        store(&address)
    }

    private init(_ start: UnsafePointer<sockaddr>, _ length: socklen_t) {
        self.length = min(length, socklen_t(MemoryLayout<sockaddr_storage>.size))
        unsafe withUnsafeMutableBytes(of: &storage) { storage in
            unsafe storage.copyMemory(from: UnsafeRawBufferPointer(start: start, count: Int(self.length)))
        }
    }

    private init?(_ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = unsafe withUnsafeMutablePointer(to: &storage) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe ask($0, &length) }
        }
        guard result == 0 else { return nil }
        (self.storage, self.length) = (storage, min(length, socklen_t(MemoryLayout<sockaddr_storage>.size)))
    }

    private mutating func store<Address: BitwiseCopyable>(_ address: inout Address) {
        unsafe withUnsafeMutableBytes(of: &storage) { storage in
            unsafe withUnsafeBytes(of: &address) { unsafe storage.copyMemory(from: $0) }
        }
    }

    /// The family: `AF_UNIX`, `AF_INET`, `AF_INET6`.
    package var family: Int32 { Int32(storage.ss_family) }

    /// Returns the address at this end of a socket; nil if the socket is not usable any more.
    package static func local(of socket: Int32) -> SocketAddress? {
        unsafe SocketAddress { unsafe getsockname(socket, $0, $1) }
    }

    /// Returns the address at the other end of a socket; nil if the socket is not connected any more.
    package static func peer(of socket: Int32) -> SocketAddress? {
        unsafe SocketAddress { unsafe getpeername(socket, $0, $1) }
    }

    /// Host without brackets and port of an IP address, an IPv4 one in IPv6 as IPv4; nil for other families.
    package var hostAndPort: (host: String, port: UInt16)? {
        switch family {
        case AF_INET:
            return unsafe withUnsafeBytes(of: storage) { bytes in
                let name = unsafe bytes.loadUnaligned(as: sockaddr_in.self)
                var address = name.sin_addr
                return unsafe (Self.text(AF_INET, &address), UInt16(bigEndian: name.sin_port))
            }
        case AF_INET6:
            let (host, port) = unsafe withUnsafeBytes(of: storage) { bytes in
                let name = unsafe bytes.loadUnaligned(as: sockaddr_in6.self)
                var address = name.sin6_addr
                return unsafe (Self.text(AF_INET6, &address), UInt16(bigEndian: name.sin6_port))
            }
            // Callers over IPv4 have this form at a socket for both families.
            let isMapped = host.hasPrefix("::ffff:") && host.utf8.contains(UInt8(ascii: "."))
            return (isMapped ? String(host.dropFirst(7)) : host, port)
        default:
            return nil
        }
    }

    /// Connects a socket; throws `EINPROGRESS` if it does not block and the peer has not answered yet.
    package func connect(_ socket: Int32) throws(SystemError) {
        let code = unsafe withPointer { unsafe Glibc.connect(socket, $0, $1) == 0 ? 0 : errno }
        if code != 0 { throw SystemError(code: code) }
    }

    /// Binds a socket.
    package func bind(_ socket: Int32) throws(SystemError) {
        let code = unsafe withPointer { unsafe Glibc.bind(socket, $0, $1) == 0 ? 0 : errno }
        if code != 0 { throw SystemError(code: code) }
    }

    /// Returns the addresses of a host from this machine's resolver, which may block.
    ///
    /// - Parameter isPassive: True to get, for an empty host, all addresses of this machine to listen at.
    package static func resolve(
        host: String, port: UInt16, isPassive: Bool = false
    ) throws(ResolverError) -> [SocketAddress] {
        var hints = unsafe addrinfo()
        unsafe hints.ai_flags = (isPassive ? AI_PASSIVE : 0) | AI_NUMERICSERV
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0 else { throw ResolverError(description: unsafe String(cString: gai_strerror(code))) }
        defer { unsafe freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = unsafe list
        while let entry = unsafe next?.pointee {
            if let address = unsafe entry.ai_addr { unsafe found.append(SocketAddress(address, entry.ai_addrlen)) }
            unsafe next = entry.ai_next
        }
        return found
    }

    private func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        unsafe withUnsafePointer(to: storage) { storage in
            unsafe storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, length) }
        }
    }

    private static func text(_ family: Int32, _ address: UnsafeRawPointer) -> String {
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        unsafe inet_ntop(family, address, &buffer, socklen_t(buffer.count))
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Failure to find the addresses of a host.
package struct ResolverError: Error, Sendable, CustomStringConvertible {
    /// The resolver's words.
    package let description: String
}
