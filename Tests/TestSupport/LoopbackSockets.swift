// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Glibc
internal import Synchronization
internal import System

/// Lends `body` the address 127.0.0.1 with that port, as C wants it.
package func withLoopback<Value>(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

/// Returns the number of this process's sockets with one of these ports at either end.
package func openSockets(at ports: Set<UInt16>) -> Int {
    (Int32(0)..<8192).count { descriptor in
        [SocketAddress.local(of: descriptor), SocketAddress.peer(of: descriptor)].contains { address in
            address?.hostAndPort.map { ports.contains($0.port) } ?? false
        }
    }
}

/// Returns a TCP socket that is bound to a free port of 127.0.0.1 and does not listen yet, and that port.
package func loopbackSocket() -> (descriptor: Int32, port: UInt16) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let isBound = unsafe withLoopback(port: 0) { unsafe bind(descriptor, $0, $1) } == 0
    precondition(isBound, "no port of 127.0.0.1 is free")
    return (descriptor, port(of: descriptor))
}

/// Returns the port that a TCP socket is bound to.
package func port(of descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    _ = unsafe withUnsafeMutablePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            unsafe getsockname(descriptor, $0, &length)
        }
    }
    return UInt16(bigEndian: address.sin_port)
}

/// Ports for listeners that cannot report their port. They lie below the range from which the system chooses, so that
/// no connection under way can take one between our check and the program's start.
package enum Ports {
    /// Begins anywhere, so that the tests of two clones on one machine do not meet.
    private static let last = Mutex(UInt16.random(in: 10_000..<31_000))

    /// Returns a port of 127.0.0.1 without a listener, which is handed out once.
    package static func next() -> UInt16 {
        while true {
            let port = last.withLock { last in
                last = last < 32_000 ? last + 1 : 10_000
                return last
            }
            if isFree(port) { return port }
        }
    }

    private static func isFree(_ port: UInt16) -> Bool {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        var on: Int32 = 1
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        return unsafe withLoopback(port: port) { address, length in unsafe bind(descriptor, address, length) == 0 }
    }
}
