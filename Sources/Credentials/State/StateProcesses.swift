// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
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

    private let directory: JudgedDirectory
    private let file: Descriptor

    /// Creates the entry of this process. Throws if the directory cannot be written.
    package init(in path: String, socket: String?) throws(SystemError) {
        let name = "\(getpid())-\(UInt64.random(in: .min ... .max))"
        let directory = try JudgedDirectory(of: "\(path)/\(Self.prefix)\(name)", followingLast: false)
        self.directory = directory
        // Locked before it has its name: an entry without a lock is one that was left behind.
        let temporary = ".\(Self.prefix)\(name)"
        file = try directory.create(temporary, O_RDWR)
        do throws(SystemError) {
            try directory.adoptOwner(file)
            _ = try systemCall { [number = file.number] in flock(number, LOCK_EX | LOCK_NB) }
            // Without its content, as on a full disk, the entry still shows that the state is in use.
            if let socket { try? file.writeAll(Array(socket.utf8)) }
            try directory.rename(temporary, to: directory.name)
        } catch {
            try? directory.remove(temporary)
            throw error
        }
    }

    deinit { try? directory.remove(directory.name) }

    /// Returns the running processes that use the directory, without this one. Removes entries that were left behind.
    ///
    /// Throws if an entry cannot be read: its process may be running, with latches in its memory.
    package static func running(in path: String) throws(StateError) -> [Running] {
        var place = path
        do throws(SystemError) {
            let directory = try JudgedDirectory(at: path)
            var running: [Running] = []
            for name in try directory.names() where name.hasPrefix(prefix) {
                guard let process = pid_t(name.dropFirst(prefix.count).prefix { $0 != "-" }), process != getpid() else {
                    continue
                }
                place = "\(path)/\(name)"
                if let entry = try entry(name, of: process, in: directory) { running.append(entry) }
            }
            return running
        } catch {
            // Nobody has used the state yet.
            if error.code == ENOENT { return [] }
            throw StateError(reason: FileFault.system("read", place, error.code).reason)
        }
    }

    private static func entry(
        _ name: String, of process: pid_t, in directory: JudgedDirectory
    ) throws(SystemError) -> Running? {
        let file: Descriptor
        do throws(SystemError) {
            file = try directory.open(name, O_RDONLY)
        } catch {
            // The process has ended meanwhile, or no process has made this.
            if error.code == ENOENT || JudgedDirectory.refusal(error.code) != nil { return nil }
            throw error
        }
        do throws(SystemError) {
            _ = try systemCall { [number = file.number] in flock(number, LOCK_EX | LOCK_NB) }
            try? directory.remove(name)
            return nil
        } catch {
            guard error.code == EWOULDBLOCK else { throw error }
        }
        let socket = String(decoding: try file.readAll(limit: limit).prefix(limit), as: UTF8.self)
        return Running(process: process, socket: socket.isEmpty ? nil : socket)
    }
}
