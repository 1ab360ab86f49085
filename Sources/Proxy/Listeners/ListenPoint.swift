// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Where a listener listens.
package enum ListenPoint: Sendable, Hashable {
    /// A socket that the service manager opened, by its name there.
    case inherited(descriptor: Int32, name: String)
    /// Host or address, and port; 0: any free one.
    case tcp(host: String, port: UInt16)
    /// A path, and the permissions of the socket.
    case unix(path: String, mode: UInt32)

    /// Opens the socket and listens; throws what to tell the operator.
    package func open() throws(ListenError) -> Int32 {
        switch self {
        case .inherited(let descriptor, _): descriptor
        case .tcp(let host, let port): try Self.openTCP(host: host, port: port)
        case .unix(let path, let mode): try Self.openUnix(path: path, mode: mode)
        }
    }

    /// The name that a socket has in the file system which `open` has just returned.
    var file: SocketFile? {
        if case .unix(let path, _) = self { SocketFile(at: path) } else { nil }
    }

    /// Lets no new callers into the queue of a socket that `open` returned and that is about to be closed: they are
    /// refused, while those who wait there can still be accepted.
    func seal(_ descriptor: Int32, _ file: SocketFile?) {
        switch self {
        case .inherited: break
        // A TCP socket that is shut down would reset those in its queue. One that is deaf to the network keeps them.
        case .tcp: _ = clinux_deafen(descriptor)
        case .unix:
            // The name goes first: once callers are refused, the path may be another daemon's at any moment.
            file?.remove()
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// Closes a socket that `open` returned, and removes the name that it still has in the file system.
    package func close(_ descriptor: Int32, _ file: SocketFile? = nil) {
        file?.remove()
        _ = Glibc.close(descriptor)
    }

    /// Returns whether both are one place to listen at.
    func isSamePlace(as other: ListenPoint) -> Bool {
        if case .unix(let path, _) = self, case .unix(path, _) = other { return true }
        return self == other
    }

    /// Gives a socket that is open at the same place the permissions that are asked for here.
    func setPermissions() throws(ListenError) {
        guard case .unix(let path, let mode) = self, unsafe chmod(path, mode_t(mode)) != 0 else { return }
        throw ListenError("unix:\(path)", errno: errno)
    }

    private static func openTCP(host: String, port: UInt16) throws(ListenError) -> Int32 {
        var hints = unsafe addrinfo()
        unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = unsafe getaddrinfo(host, "\(port)", &hints, &list)
        guard code == 0, let first = unsafe list else {
            let words = unsafe String(cString: gai_strerror(code))
            throw ListenError(reason: "\(host):\(port): the host cannot be resolved (\(words))")
        }
        defer { unsafe freeaddrinfo(first) }
        let address = unsafe first.pointee
        let descriptor = unsafe clinux_socket(address.ai_family, Int32(SOCK_STREAM.rawValue))
        guard descriptor >= 0 else { throw ListenError("\(host):\(port)", errno: -descriptor) }
        var one: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard unsafe bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, backlog) == 0
        else {
            let failure = errno
            _ = Glibc.close(descriptor)
            throw ListenError("\(host):\(port)", errno: failure)
        }
        return descriptor
    }

    private static func openUnix(path: String, mode: UInt32) throws(ListenError) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { field in
            guard bytes.count < field.count else { return false }
            unsafe field.copyBytes(from: bytes)
            return true
        }
        guard fits, !bytes.isEmpty else {
            throw ListenError(reason: "unix:\(path): the path of a socket is 1 to 107 bytes long")
        }
        let descriptor = clinux_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue))
        guard descriptor >= 0 else { throw ListenError("unix:\(path)", errno: -descriptor) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = unsafe withUnsafePointer(to: &address) { address in
            unsafe address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe removeIfStale(path, at: unsafe address, length: length)
                return unsafe bind(descriptor, address, length)
            }
        }
        // Nobody gets in before it listens, and then the permissions are what they should be. The umask is the whole process's.
        guard result == 0, unsafe chmod(path, mode_t(mode)) == 0, listen(descriptor, backlog) == 0 else {
            let failure = errno
            _ = Glibc.close(descriptor)
            throw ListenError("unix:\(path)", errno: failure)
        }
        return descriptor
    }

    /// A socket that nobody listens at is what a crash left behind; one that somebody does is not ours to take.
    private static func removeIfStale(_ path: String, at address: UnsafePointer<sockaddr>, length: socklen_t) {
        // A file that is no socket refuses the connection, too.
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return }
        let probe = clinux_socket(AF_UNIX, Int32(SOCK_STREAM.rawValue))
        guard probe >= 0 else { return }
        defer { _ = Glibc.close(probe) }
        if unsafe connect(probe, address, length) != 0, errno == ECONNREFUSED { unsafe unlink(path) }
    }

    /// The kernel brings it down to net.core.somaxconn.
    private static let backlog: Int32 = 4096
}

extension ListenPoint: CustomStringConvertible {
    /// As the configuration writes it.
    package var description: String {
        switch self {
        case .inherited(_, let name): "systemd:\(name)"
        case .tcp(let host, let port): host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _): "unix:\(path)"
        }
    }
}

/// Why a listener could not be opened.
package struct ListenError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where and why.
    package let reason: String
    /// In one line.
    package var description: String { reason }

    init(reason: String) { self.reason = reason }

    init(_ place: String, errno: Int32) {
        let words = unsafe String(cString: strerror(errno))
        let advice =
            switch errno {
            case EADDRINUSE: "; another program listens there"
            case EACCES: "; the user of this process may not (ports below 1024 need CAP_NET_BIND_SERVICE)"
            case EADDRNOTAVAIL: "; this machine has no such address"
            default: ""
            }
        reason = "cannot listen at \(place): \(words)\(advice)"
    }
}
