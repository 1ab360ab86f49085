// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import Glibc

/// The name of a Unix socket in the file system.
///
/// The directory may belong to a user whom root need not trust, and who replaces the name at any moment.
package enum SocketPath {
    /// Binds a socket to `path` with the permissions `mode`, whatever the umask is.
    package static func bind(_ socket: Int32, to path: String, mode: mode_t) throws(SystemError) {
        let directory = try JudgedDirectory(of: path, followingLast: false)
        guard let address = SocketAddress(unixPath: directory.stable(path)) else {
            throw SystemError(code: ENAMETOOLONG)
        }
        try address.bind(socket)
        try setMode(mode, of: path, in: directory)
    }

    /// Changes the permissions of the socket at `path`.
    package static func setMode(_ mode: mode_t, of path: String) throws(SystemError) {
        try setMode(mode, of: path, in: try JudgedDirectory(of: path, followingLast: false))
    }

    /// Removes the name of a socket if `isStale` says so of its status.
    package static func remove(_ path: String, if isStale: (stat) -> Bool) {
        guard let directory = try? JudgedDirectory(of: path, followingLast: false),
            let status = try? directory.status(of: directory.name), isStale(status)
        else { return }
        try? directory.remove(directory.name)
    }

    private static func setMode(_ mode: mode_t, of path: String, in directory: JudgedDirectory) throws(SystemError) {
        guard directory.isForeign else { return try FileSystem.setMode(mode, of: directory.stable(path)) }
        // What was opened is examined and changed, not what has the name by then.
        let file = try directory.openName()
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFSOCK, status.st_uid == geteuid(), status.st_nlink == 1 else {
            throw SystemError(code: EPERM)
        }
        try FileSystem.setMode(mode, of: "/proc/self/fd/\(file.number)")
    }
}
