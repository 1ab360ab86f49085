// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
internal import Synchronization

/// The socket that a service manager waits at for `READY=1` and the like (sd_notify(3)).
final class NotifySocket: Sendable {
    /// The value of `NOTIFY_SOCKET`.
    let path: String
    private let folder: Folder
    private let descriptor: Int32
    private let received = Mutex<[String]>([])

    init() throws {
        folder = try Folder()
        path = folder.path(of: "notify")
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let descriptor = descriptor
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0 else { throw ChildError(description: "no socket at \(path): error \(errno)") }
    }

    deinit { close(descriptor) }

    /// The lines received so far, in order.
    var lines: [String] {
        received.withLock { lines in
            var buffer = [UInt8](repeating: 0, count: 8192)
            while true {
                let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
                guard count > 0 else { return lines }
                lines += String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
            }
        }
    }

    /// Waits until at least `times` lines begin with that text.
    func wait(for text: String, times: Int = 1) async -> Bool {
        await eventually { lines.count { $0.hasPrefix(text) } >= times }
    }
}
