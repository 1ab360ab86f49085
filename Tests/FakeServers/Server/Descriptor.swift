// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A file descriptor of the system, closed with its last holder.
final class Descriptor: Sendable {
    let number: Int32

    init(_ number: Int32) {
        self.number = number
    }

    deinit {
        close(number)
    }

    /// A pair of sockets used as a pipe, whose reading end says "hang up" as soon as the writing end is closed: how one thread wakes all others.
    static func pipe() -> (reading: Descriptor, writing: Descriptor)? {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
        return (Descriptor(ends[0]), Descriptor(ends[1]))
    }

    /// A listening socket on 127.0.0.1, and the port it got; throws the error number.
    static func listening(onPort port: UInt16) throws(LoopbackServerError) -> (Descriptor, UInt16) {
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let number = socket(AF_INET, type, 0)
        guard number >= 0 else { throw LoopbackServerError(doing: "make a socket", port: port, code: errno) }
        let result = Descriptor(number)
        var on: Int32 = 1
        _ = unsafe setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let bound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard unsafe bind(number, generic, length) == 0, listen(number, 1024) == 0 else { return false }
                return unsafe getsockname(number, generic, &length) == 0
            }
        }
        guard bound else { throw LoopbackServerError(doing: "listen on 127.0.0.1", port: port, code: errno) }
        return (result, UInt16(bigEndian: address.sin_port))
    }

    /// The next connection of a listening socket; `nil` where there is none.
    func acceptNext() -> Descriptor? {
        let number = accept(self.number, nil, nil)
        guard number >= 0 else { return nil }
        // Glibc's module lacks accept4, which would do it at once.
        _ = fcntl(number, F_SETFD, FD_CLOEXEC)
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        var on: Int32 = 1
        _ = unsafe setsockopt(number, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        return Descriptor(number)
    }

    /// What `poll` says of each descriptor in turn; all zero when the time in milliseconds is over (-1 is never).
    static func poll(_ interests: [(descriptor: Descriptor, events: Int32)], milliseconds: Int32) -> [Int32] {
        var entries = interests.map {
            pollfd(fd: $0.descriptor.number, events: Int16(truncatingIfNeeded: $0.events), revents: 0)
        }
        let count = unsafe Glibc.poll(&entries, nfds_t(entries.count), milliseconds)
        // An interrupted wait says nothing; whoever waits asks again.
        return count > 0 ? entries.map { Int32($0.revents) } : entries.map { _ in 0 }
    }
}

/// Why a server could not start.
package struct LoopbackServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// What was tried.
    package var doing: String
    /// The port.
    package var port: UInt16
    /// The system's error number (`errno`).
    package var code: Int32

    /// What was tried, on which port, and which error it met.
    package var description: String {
        "cannot \(doing), port \(port): error \(code)\(code == EADDRINUSE ? " (the port is taken; choose another)" : "")"
    }
}
