// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Puts a new content in a file's place so that, whenever the machine stops, either the old or the new one is there,
/// whole: written beside it, synchronised, renamed over it, and the directory synchronised.
struct FileReplacement {
    /// Where the content goes.
    let path: String

    /// Writes `content` with mode 0600. An existing file's owner is kept; a new one of root's belongs to the owner of
    /// the directory, so that what an administrator creates for a service can be read by it.
    func write(_ content: [UInt8]) throws(FileFault) {
        let target = resolved
        let temporary = try writeTemporary(content, for: target)
        guard unsafe rename(temporary, target) == 0 else {
            let code = errno
            unsafe unlink(temporary)
            throw .system("write", path, code)
        }
        try synchronizeDirectory(parentDirectory(of: target))
    }

    /// Creates the file with `content`, unless there is one; says whether it did. Never leaves a half-written one.
    func create(_ content: [UInt8]) throws(FileFault) -> Bool {
        let temporary = try writeTemporary(content, for: path)
        defer { unsafe unlink(temporary) }
        // Unlike rename, link refuses where the name is taken.
        guard unsafe link(temporary, path) == 0 else {
            if errno == EEXIST { return false }
            throw .system("create", path, errno)
        }
        try synchronizeDirectory(parentDirectory(of: path))
        return true
    }

    /// Removes what interrupted writers left beside the file, where it is older than ten minutes: younger ones may
    /// still be written to.
    func removeLeftovers() {
        let target = resolved
        let directory = parentDirectory(of: target)
        let now = time(nil)
        for name in DirectoryListing.names(in: directory) ?? [] where name.hasPrefix(Self.prefix(for: target)) {
            var status = stat()
            let leftover = "\(directory)/\(name)"
            guard unsafe lstat(leftover, &status) == 0, now - status.st_mtim.tv_sec > 600 else { continue }
            unsafe unlink(leftover)
        }
    }

    /// Removes the file, durably; says whether there was one.
    @discardableResult
    func remove() throws(FileFault) -> Bool {
        guard unsafe unlink(path) == 0 else {
            if errno == ENOENT { return false }
            throw .system("remove", path, errno)
        }
        try synchronizeDirectory(parentDirectory(of: path))
        return true
    }

    /// The start of the names of files in the making.
    static func prefix(for path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? "file"
        return ".\(name).tmp-"
    }

    /// The path with symbolic links followed: replacing a link would leave what it names as it was.
    private var resolved: String {
        guard let real = unsafe realpath(path, nil) else { return path }
        defer { unsafe free(real) }
        return unsafe String(cString: real)
    }

    /// Writes `content` to a file of its own beside `target`, synchronised; returns its path.
    private func writeTemporary(_ content: [UInt8], for target: String) throws(FileFault) -> String {
        let directory = parentDirectory(of: target)
        let temporary = "\(directory)/\(Self.prefix(for: target))\(getpid())-\(UInt64.random(in: .min ... .max))"
        do {
            let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            try adoptOwner(file, of: [target, directory])
            try file.writeAll(content)
            _ = try systemCall { [number = file.number] in fsync(number) }
            return temporary
        } catch {
            unsafe unlink(temporary)
            throw .system("write", path, error.code)
        }
    }

    private func synchronizeDirectory(_ directory: String) throws(FileFault) {
        do {
            let descriptor = try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
            _ = try systemCall { fsync(descriptor.number) }
        } catch {
            throw .system("synchronise", directory, error.code)
        }
    }
}

/// Where we are root: gives `file` to the owner of the first of `models` that exists.
func adoptOwner(_ file: borrowing Descriptor, of models: [String]) throws(SystemError) {
    guard geteuid() == 0 else { return }
    for model in models {
        var status = stat()
        guard unsafe stat(model, &status) == 0 else { continue }
        _ = try systemCall { [number = file.number] in fchown(number, status.st_uid, status.st_gid) }
        return
    }
}
