// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import TestSupport

/// A port that is taken, by nobody who would answer.
final class RawListener: Sendable {
    /// The port.
    let port = Ports.next()
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)

    init() throws {
        let descriptor = descriptor
        let isTaken = unsafe withLoopback(port: port) { address, length in
            unsafe bind(descriptor, address, length) == 0 && listen(descriptor, 1) == 0
        }
        guard isTaken else { throw ChildError(description: "port \(port) cannot be taken: error \(errno)") }
    }

    deinit { close(descriptor) }
}
