// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import System

/// Entry of a running process in its state directory, for commands that change the state.
///
/// The state of a running process is also in its memory, so a change on disk alone would not reach it. The entry is a file
/// `process-PID-NUMBER` with the path of the admin socket. The process holds a lock on it until its end, however it ends.
package final class StateProcess: Sendable {
    private static let prefix = "process-"
    private static let limit = 4096

    /// Entry of another process.
    package struct Running: Sendable, Equatable {
        /// Process.
        package let process: Int32
        /// Path of the admin socket; nil without one.
        package let socket: String?
    }

    private let path: String
    private let file: Descriptor

    /// Creates the entry of this process. Throws if the directory cannot be written.
    package init(in directory: String, socket: String?) throws(SystemError) {
        let name = "\(getpid())-\(UInt64.random(in: .min ... .max))"
        path = "\(directory)/\(Self.prefix)\(name)"
        // Locked before it has its name: an entry without a lock is one that was left behind.
        let temporary = "\(directory)/.\(Self.prefix)\(name)"
        file = try Descriptor(opening: temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do throws(SystemError) {
            try adoptOwner(file, of: [directory])
            _ = try systemCall { [number = file.number] in flock(number, LOCK_EX | LOCK_NB) }
            // Without its content, as on a full disk, the entry still shows that the state is in use.
            if let socket { try? file.writeAll(Array(socket.utf8)) }
            try FileSystem.rename(temporary, to: path)
        } catch {
            try? FileSystem.remove(temporary)
            throw error
        }
    }

    deinit { try? FileSystem.remove(path) }

    /// Returns the running processes that use the directory, without this one. Removes entries that were left behind.
    package static func running(in directory: String) -> [Running] {
        (DirectoryListing.names(in: directory) ?? []).sorted().compactMap { name in
            guard name.hasPrefix(prefix), let process = pid_t(name.dropFirst(prefix.count).prefix { $0 != "-" }),
                process != getpid()
            else { return nil }
            return entry(of: process, at: "\(directory)/\(name)")
        }
    }

    private static func entry(of process: pid_t, at path: String) -> Running? {
        // The directory may belong to another user, whom root need not trust: no link, and nothing that blocks.
        guard let file = try? Descriptor(opening: path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) else { return nil }
        if flock(file.number, LOCK_EX | LOCK_NB) == 0 {
            try? FileSystem.remove(path)
            return nil
        }
        let bytes = (try? file.readAll(limit: limit)) ?? []
        let socket = String(decoding: bytes.prefix(limit), as: UTF8.self)
        return Running(process: process, socket: socket.isEmpty ? nil : socket)
    }
}
