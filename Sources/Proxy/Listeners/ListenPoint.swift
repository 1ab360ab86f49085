// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import System

/// The address of a listener.
package enum ListenPoint: Sendable, Hashable {
    /// A socket opened by the service manager, with its name there.
    case inherited(descriptor: Int32, name: String)
    /// A host or address, and a port; 0 for any free one.
    case tcp(host: String, port: UInt16)
    /// A path, and the permissions of the socket.
    case unix(path: String, mode: UInt32)

    /// Opens the socket and listens. The error has the message for the operator.
    package func open() throws(ListenError) -> Int32 {
        switch self {
        case .inherited(let descriptor, _): descriptor
        case .tcp(let host, let port): try Self.openTCP(host: host, port: port)
        case .unix(let path, let mode): try Self.openUnix(path: path, mode: mode)
        }
    }

    /// The file of a Unix socket that `open` has just returned.
    var file: SocketFile? {
        if case .unix(let path, _) = self { SocketFile(at: path) } else { nil }
    }

    /// Stops new callers from entering the queue of a socket that is about to be closed. They are refused, while callers in
    /// the queue can still be accepted.
    func seal(_ descriptor: Int32, _ file: SocketFile?) {
        switch self {
        case .inherited: break
        // Shutting a TCP socket down would reset callers in its queue. A filter that drops all packets keeps them.
        case .tcp: _ = clinux_deafen(descriptor)
        case .unix:
            // The name is removed first: once callers are refused, another daemon may take the path at any moment.
            file?.remove()
            _ = shutdown(descriptor, Int32(SHUT_RDWR))
        }
    }

    /// Closes a socket that `open` returned, and removes its name in the file system.
    package func close(_ descriptor: Int32, _ file: SocketFile? = nil) {
        file?.remove()
        _ = Glibc.close(descriptor)
    }

    /// Returns true if both are the same address.
    func isSamePlace(as other: ListenPoint) -> Bool {
        if case .unix(let path, _) = self, case .unix(path, _) = other { return true }
        return self == other
    }

    /// Applies these permissions to an open socket at the same address.
    func setPermissions() throws(ListenError) {
        guard case .unix(let path, let mode) = self else { return }
        do throws(SystemError) {
            try SocketPath.setMode(mode_t(mode), of: path)
        } catch {
            throw ListenError("unix:\(path)", errno: error.code)
        }
    }

    private static func openTCP(host: String, port: UInt16) throws(ListenError) -> Int32 {
        let address: SocketAddress?
        do throws(ResolverError) {
            address = try SocketAddress.resolve(host: host, port: port, isPassive: true).first
        } catch {
            throw ListenError(reason: "\(host):\(port): the host cannot be resolved (\(error))")
        }
        guard let address else { throw ListenError(reason: "\(host):\(port): the host has no address") }
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeNonblocking(address.family))
            Sockets.reuseAddress(socket.number)
            try address.bind(socket.number)
            return try listening(socket)
        } catch {
            throw ListenError("\(host):\(port)", errno: error.code)
        }
    }

    private static func openUnix(path: String, mode: UInt32) throws(ListenError) -> Int32 {
        guard let address = SocketAddress(unixPath: path) else {
            throw ListenError(
                reason: "unix:\(path): the path of a socket is 1 to \(SocketAddress.longestPath) bytes long")
        }
        do throws(SystemError) {
            let socket = Descriptor(owning: try Sockets.makeNonblocking(AF_UNIX))
            removeIfStale(path, at: address)
            // No caller can connect before `listen`, and the permissions are set by then. The umask belongs to the whole process.
            try SocketPath.bind(socket.number, to: path, mode: mode_t(mode))
            return try listening(socket)
        } catch {
            throw ListenError("unix:\(path)", errno: error.code)
        }
    }

    private static func listening(_ socket: consuming Descriptor) throws(SystemError) -> Int32 {
        let number = socket.number
        try systemCall { listen(number, backlog) }
        return socket.release()
    }

    /// Removes a socket that a crashed process left. A socket on which a process listens stays.
    private static func removeIfStale(_ path: String, at address: SocketAddress) {
        // A connection to a file that is not a socket is refused as well.
        guard let status = try? FileSystem.linkStatus(of: path), status.st_mode & S_IFMT == S_IFSOCK else { return }
        do throws(SystemError) {
            let probe = Descriptor(owning: try Sockets.makeNonblocking(AF_UNIX))
            try address.connect(probe.number)
        } catch {
            if error.code == ECONNREFUSED { SocketPath.remove(path) { $0.st_mode & S_IFMT == S_IFSOCK } }
        }
    }

    /// The kernel limits it to net.core.somaxconn.
    private static let backlog: Int32 = 4096
}

extension ListenPoint: CustomStringConvertible {
    /// The address as in the configuration.
    package var description: String {
        switch self {
        case .inherited(_, let name): "systemd:\(name)"
        case .tcp(let host, let port): host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _): "unix:\(path)"
        }
    }
}

/// Error because of which a listener could not be opened.
package struct ListenError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The address and the reason.
    package let reason: String
    /// The error in one line.
    package var description: String { reason }

    init(reason: String) { self.reason = reason }

    init(_ place: String, errno: Int32) {
        let advice =
            switch errno {
            case EADDRINUSE: "; another program listens there"
            case EACCES: "; the user of this process may not (ports below 1024 need CAP_NET_BIND_SERVICE)"
            case EADDRNOTAVAIL: "; this machine has no such address"
            case ENOENT: "; make the directory of the socket first"
            case ELOOP: "; another user may have made a symbolic link on the path"
            default: ""
            }
        reason = "cannot listen at \(place): \(SystemError.message(errno))\(advice)"
    }
}

/// An open listening socket, shared by all workers.
struct ListenSocket: Sendable {
    /// The address.
    var point: ListenPoint
    let descriptor: Int32
    /// The name in the file system, if there is one.
    let file: SocketFile?
    /// The connection quotas of the listener, on all workers.
    let callers: ConnectionQuotas

    /// Stops new callers from entering the queue; see `ListenPoint.seal`.
    func seal() { point.seal(descriptor, file) }

    /// Closes the socket and removes its name.
    func close() { point.close(descriptor, file) }

    /// True if no other process accepts from the socket after this one stops.
    var isOurs: Bool {
        if case .inherited = point { false } else { true }
    }
}

/// The name of a Unix socket in the file system, with the identity of the file at bind time.
package struct SocketFile: Sendable, Hashable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// Finds the file that is at `path` now; `nil` without one.
    init?(at path: String) {
        guard let status = try? FileSystem.linkStatus(of: path) else { return nil }
        self.init(path, status)
    }

    private init(_ path: String, _ status: stat) {
        self.path = path
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    /// Removes the name, unless it belongs to another file by now. While this process has its socket open, no other
    /// file has its inode number.
    ///
    /// To be called while callers can still connect to the socket. Until then no other daemon takes the path, so the file that
    /// was examined is the one that is removed.
    func remove() {
        SocketPath.remove(path) { SocketFile(path, $0) == self }
    }
}
