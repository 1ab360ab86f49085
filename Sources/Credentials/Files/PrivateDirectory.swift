// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A directory that only its owner can enter.
struct PrivateDirectory {
    let path: String

    /// Whether there is one.
    var exists: Bool { unsafe access(path, F_OK) == 0 }

    /// Creates it with mode 0700, and its parents as the umask has them, where they are missing. One that others may
    /// write to is refused: they could replace what is in it.
    func ensure() throws(FileFault) {
        do {
            try create(path, mode: 0o700)
            var status = stat()
            _ = try systemCall { unsafe stat(path, &status) }
            guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError(code: ENOTDIR) }
            guard status.st_uid == geteuid() || status.st_uid == 0 || geteuid() == 0 else {
                throw SystemError(code: EPERM)
            }
            guard status.st_mode & 0o022 == 0 else {
                throw FileFault(.exposed, "others may write to the directory \(path); run: chmod 700 \(path)")
            }
        } catch let fault as FileFault {
            throw fault
        } catch let error as SystemError {
            throw .system("use the directory", path, error.code)
        } catch {
            throw FileFault(.failed, "cannot use the directory \(path)")
        }
    }

    private func create(_ path: String, mode: mode_t) throws(SystemError) {
        guard unsafe mkdir(path, mode) != 0 else { return }
        let code = errno
        if code == EEXIST { return }
        guard code == ENOENT, path.contains("/"), path != "/" else { throw SystemError(code: code) }
        try create(parentDirectory(of: path), mode: 0o755)
        guard unsafe mkdir(path, mode) == 0 || errno == EEXIST else { throw SystemError(code: errno) }
    }
}
