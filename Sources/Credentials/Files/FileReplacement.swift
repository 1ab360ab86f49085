// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
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
    /// file that its administrator creates. A link is replaced at its target.
    func write(_ content: [UInt8]) throws(FileFault) {
        let directory = try directory("write", followingLast: true)
        let temporary = try writeTemporary(content, in: directory)
        do throws(SystemError) {
            try directory.rename(temporary, to: directory.name)
        } catch {
            try? directory.remove(temporary)
            throw .system("write", path, error.code)
        }
        try synchronizeDirectory(directory, after: "is written, but may be lost")
    }

    /// Creates the file with `content` unless the path exists, and returns true if it did. Never leaves a partial file.
    func create(_ content: [UInt8]) throws(FileFault) -> Bool {
        let directory = try directory("create", followingLast: false)
        let temporary = try writeTemporary(content, in: directory)
        defer { try? directory.remove(temporary) }
        do throws(SystemError) {
            // Unlike rename, link fails if the name is in use.
            try directory.link(temporary, to: directory.name)
        } catch {
            if error.code == EEXIST { return false }
            throw .system("create", path, error.code)
        }
        try synchronizeDirectory(directory, after: "is created, but may be lost")
        return true
    }

    /// Removes temporary files of interrupted writers that are older than ten minutes.
    ///
    /// More recent ones may still be in use.
    func removeLeftovers() {
        guard let directory = try? JudgedDirectory(of: path, followingLast: true) else { return }
        let now = Int64(time(nil))
        for name in (try? directory.names()) ?? [] where name.hasPrefix(Self.prefix(for: directory.name)) {
            // The time may be any: it is that of a file of another user.
            guard let modified = try? directory.status(of: name).st_mtim.tv_sec,
                now.saturatingSubtract(Int64(modified)) > 600
            else { continue }
            try? directory.remove(name)
        }
    }

    /// Removes the file, and returns true if there was one. The removal is on disk when the call returns.
    @discardableResult
    func remove() throws(FileFault) -> Bool {
        let directory: JudgedDirectory
        do throws(SystemError) {
            directory = try JudgedDirectory(of: path, followingLast: false)
            try directory.remove(directory.name)
        } catch {
            if error.code == ENOENT { return false }
            throw .system("remove", path, error.code)
        }
        try synchronizeDirectory(directory, after: "is removed, but may be back")
        return true
    }

    /// Returns the prefix of temporary file names.
    static func prefix(for path: String) -> String {
        let name = path.split(separator: "/").last.map(String.init) ?? "file"
        return ".\(name).tmp-"
    }

    private func directory(_ action: String, followingLast: Bool) throws(FileFault) -> JudgedDirectory {
        do throws(SystemError) {
            return try JudgedDirectory(of: path, followingLast: followingLast)
        } catch {
            throw .system(action, path, error.code)
        }
    }

    /// Writes `content` to a temporary file in the directory, synchronizes it, and returns its name.
    private func writeTemporary(_ content: [UInt8], in directory: JudgedDirectory) throws(FileFault) -> String {
        let temporary = "\(Self.prefix(for: directory.name))\(getpid())-\(UInt64.random(in: .min ... .max))"
        do throws(SystemError) {
            let file = try directory.create(temporary)
            try directory.adoptOwner(file, of: directory.name)
            try file.writeAll(content)
            _ = try systemCall { [number = file.number] in synchronize(number) }
            return temporary
        } catch {
            try? directory.remove(temporary)
            throw .system("write", path, error.code)
        }
    }

    /// Synchronizes the directory. The error of a failure states that the change is made, and may not survive a crash.
    private func synchronizeDirectory(_ directory: JudgedDirectory, after change: String) throws(FileFault) {
        do throws(SystemError) {
            let descriptor = try directory.reopened()
            _ = try systemCall { [number = descriptor.number] in synchronize(number) }
        } catch {
            let fault = FileFault.system("synchronize", FileSystem.parent(of: path), error.code)
            throw FileFault(.failed, "\(path) \(change) if the machine crashes now: \(fault.reason)")
        }
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
        do throws(SystemError) {
            let file = try JudgedDirectory(of: path, followingLast: false).openLock()
            _ = try systemCall { [number = file.number] in flock(number, LOCK_EX) }
            return file
        } catch {
            throw .system("lock", path, error.code)
        }
    }
}
