// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

package import ChallengeHandling
internal import Glibc
internal import System

/// The directory for state.
package enum StateDirectory {
    /// Returns `$STATE_DIRECTORY`, else the default directory of the user.
    ///
    /// systemd sets the variable for `StateDirectory=`; the first path of a colon-separated list counts. The default is
    /// `/var/lib/countersign` for root, else `$XDG_STATE_HOME/countersign`, else `~/.local/state/countersign`.
    package static func locate(
        environment: [String: String], uid: UInt32 = geteuid()
    ) throws(StateError) -> String {
        if let given = firstAbsolute(environment["STATE_DIRECTORY"]) { return given }
        if uid == 0 { return "/var/lib/countersign" }
        // The XDG Base Directory Specification demands that relative paths are ignored.
        if let base = firstAbsolute(environment["XDG_STATE_HOME"]) { return base + "/countersign" }
        if let home = firstAbsolute(environment["HOME"]) { return home + "/.local/state/countersign" }
        throw StateError(
            reason: "no state directory: set STATE_DIRECTORY, XDG_STATE_HOME or HOME to an absolute path")
    }
}

/// The directory for sockets and other files that are not needed after a reboot.
package enum RuntimeDirectory {
    /// Returns `$RUNTIME_DIRECTORY`, else the default directory of the user.
    ///
    /// The first path of a colon-separated list counts. The default is `/run/countersign` for root or if usable, else
    /// `$XDG_RUNTIME_DIR/countersign`. `isUsable` returns true if this process may create files in a directory.
    package static func locate(
        environment: [String: String], uid: UInt32 = geteuid(),
        isUsable: (String) -> Bool = { FileSystem.allows($0, W_OK | X_OK) }
    ) -> String {
        if let given = firstAbsolute(environment["RUNTIME_DIRECTORY"]) { return given }
        let system = "/run/countersign"
        if uid == 0 || isUsable(system) { return system }
        if let base = firstAbsolute(environment["XDG_RUNTIME_DIR"]) { return base + "/countersign" }
        return system
    }
}

/// Returns the first path of a colon-separated list if it is absolute, without a trailing slash.
private func firstAbsolute(_ list: String?) -> String? {
    guard var path = list?.split(separator: ":").first, path.hasPrefix("/") else { return nil }
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    return String(path)
}

/// A directory that only its owner can enter.
struct PrivateDirectory {
    let path: String

    var exists: Bool { FileSystem.allows(path, F_OK) }

    /// Creates the directory with mode 0700, and missing parents with the umask.
    ///
    /// Refuses a directory that others can write to, because they could replace the files in the directory.
    func ensure() throws(FileFault) {
        let status: stat
        do throws(SystemError) {
            status = try created(path, mode: 0o700)
            guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(code: ENOTDIR) }
            guard status.st_uid == geteuid() || status.st_uid == 0 || geteuid() == 0 else {
                throw SystemError(code: EPERM)
            }
        } catch {
            throw .system("use the directory", path, error.code)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw FileFault(.exposed, "other users can write to the directory \(path); run: chmod 700 \(path)")
        }
    }

    /// Creates the directory unless it exists, and returns its status.
    private func created(_ path: String, mode: mode_t) throws(SystemError) -> stat {
        let directory = try parent(of: path)
        do throws(SystemError) {
            try directory.makeDirectory(mode: mode)
        } catch {
            guard error.code == EEXIST else { throw error }
        }
        return try directory.status(of: directory.name)
    }

    /// Opens the parent of the directory, and creates it if missing.
    private func parent(of path: String) throws(SystemError) -> JudgedDirectory {
        do throws(SystemError) {
            return try JudgedDirectory(of: path, followingLast: true)
        } catch {
            guard error.code == ENOENT, path.contains("/"), path != "/" else { throw error }
            _ = try created(FileSystem.parent(of: path), mode: 0o755)
            return try JudgedDirectory(of: path, followingLast: true)
        }
    }
}
