// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// Ports for listeners that cannot tell which one they got. They lie below those that the system hands out by itself,
/// so that no connection under way can take one between our look and the program's start.
package enum Ports {
    /// Begins anywhere, so that the tests of two clones on one machine do not meet.
    private static let last = Mutex(UInt16.random(in: 10_000..<31_000))

    /// A port of 127.0.0.1 that nobody listens on, and that is handed out once.
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
