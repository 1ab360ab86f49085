// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import System

/// The atomic replacement of a file: after a crash, the file has either the old or the new content.
///
/// The content is written to a temporary file, synchronized and renamed; then the directory is synchronized.
struct FileReplacement {
    let path: String
    /// Makes the kernel write a file or directory to the disk (fsync(2)).
    var synchronize: (_ descriptor: Int32) -> Int32 = { fsync($0) }

    /// Writes `content` with mode 0600.
    ///
    /// An existing file keeps its owner. A new file of root belongs to the owner of the directory, so that a service can read a
    /// file that its administrator creates.
    func write(_ content: [UInt8]) throws(FileFault) {
        let target = resolved
        let temporary = try writeTemporary(content, for: target)
        do throws(SystemError) {
            try FileSystem.rename(temporary, to: target)
        } catch {
            try? FileSystem.remove(temporary)
            throw .system("write", path, error.code)
        }
        try synchronizeDirectory(parentDirectory(of: target), after: "is written, but may be lost")
    }

    /// Creates the file with `content` unless the path exists, and returns true if it did. Never leaves a partial file.
    func create(_ content: [UInt8]) throws(FileFault) -> Bool {
        let temporary = try writeTemporary(content, for: path)
        defer { try? FileSystem.remove(temporary) }
        do throws(SystemError) {
            // Unlike rename, link fails if the name is in use.
            try FileSystem.link(temporary, to: path)
        } catch {
            if error.code == EEXIST { return false }
            throw .system("create", path, error.code)
        }
        try synchronizeDirectory(parentDirectory(of: path), after: "is created, but may be lost")
        return true
    }

    /// Removes temporary files of interrupted writers that are older than ten minutes.
    ///
    /// More recent ones may still be in use.
    func removeLeftovers() {
        let target = resolved
        let directory = parentDirectory(of: target)
        let now = time(nil)
        for name in DirectoryListing.names(in: directory) ?? [] where name.hasPrefix(Self.prefix(for: target)) {
            let leftover = "\(directory)/\(name)"
            guard let status = try? FileSystem.linkStatus(of: leftover), now - status.st_mtim.tv_sec > 600 else {
                continue
            }
            try? FileSystem.remove(leftover)
        }
    }

    /// Removes the file, and returns true if there was one. The removal is on disk when the call returns.
    @discardableResult
    func remove() throws(FileFault) -> Bool {
        do throws(SystemError) {
            try FileSystem.remove(path)
        } catch {
            if error.code == ENOENT { return false }
            throw .system("remove", path, error.code)
        }
        try synchronizeDirectory(parentDirectory(of: path), after: "is removed, but may be back")
        return true
    }

    /// Returns the prefix of temporary file names.
    static func prefix(for path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? "file"
        return ".\(name).tmp-"
    }

    /// The path with symbolic links resolved, because the rename would replace a link instead of its target.
    private var resolved: String { FileSystem.realPath(of: path) ?? path }

    /// Writes `content` to a temporary file next to `target`, synchronizes it, and returns its path.
    private func writeTemporary(_ content: [UInt8], for target: String) throws(FileFault) -> String {
        let directory = parentDirectory(of: target)
        let temporary = "\(directory)/\(Self.prefix(for: target))\(getpid())-\(UInt64.random(in: .min ... .max))"
        do {
            let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            try adoptOwner(file, of: [target, directory])
            try file.writeAll(content)
            _ = try systemCall { [number = file.number] in synchronize(number) }
            return temporary
        } catch {
            try? FileSystem.remove(temporary)
            throw .system("write", path, error.code)
        }
    }

    /// Synchronizes the directory. The error of a failure states that the change is made, and may not survive a crash.
    private func synchronizeDirectory(_ directory: String, after change: String) throws(FileFault) {
        do {
            let descriptor = try Descriptor(opening: directory, O_RDONLY | O_DIRECTORY)
            _ = try systemCall { synchronize(descriptor.number) }
        } catch {
            let fault = FileFault.system("synchronize", directory, error.code)
            throw FileFault(.failed, "\(path) \(change) if the machine crashes now: \(fault.reason)")
        }
    }
}

/// Transfers `file` to the owner of the first existing one of `models`, if this process runs as root.
func adoptOwner(_ file: borrowing Descriptor, of models: [String]) throws(SystemError) {
    guard geteuid() == 0 else { return }
    for model in models {
        guard let status = try? FileSystem.status(of: model) else { continue }
        _ = try systemCall { [number = file.number] in fchown(number, status.st_uid, status.st_gid) }
        return
    }
}

/// An exclusive lock among processes and threads, held until its release.
///
/// The lock has its own file, because the protected file is replaced, and a lock would stay with the old one.
struct FileLock: ~Copyable {
    private let descriptor: Descriptor

    /// Waits for the lock on `path`, a file with mode 0600 that is created if missing and stays.
    init(_ path: String) throws(FileFault) {
        descriptor = try Self.acquire(path)
    }

    /// Releases the lock. Called at the end of the protected section, so that the lock is not released earlier.
    consuming func release() {}

    private static func acquire(_ path: String) throws(FileFault) -> Descriptor {
        do {
            let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
            try adoptOwner(file, of: [parentDirectory(of: path)])
            _ = try systemCall { [number = file.number] in flock(number, LOCK_EX) }
            return file
        } catch {
            throw .system("lock", path, error.code)
        }
    }
}
