// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A file in a directory that has no name there (`O_TMPFILE`, open(2)), so that nothing is left of it after a crash and
/// nobody but the daemon's own user can come by it.
///
/// Its calls block the loop. The directory is the runtime directory, which lies in memory (tmpfs) wherever systemd or
/// XDG provide it: a call is then a copy of at most `ReplayBuffer.recentLimit`, some fifty microseconds. On a disk it is a copy
/// into the page cache, until the kernel slows down whoever has written too much that is not on the disk yet. A thread for it
/// would cost each piece two hand-overs, and the caller would be held back all the same.
package final class UnnamedFile: ReplayFile {
    /// Where a file system knows no unnamed files, the name for the moment between opening and unlinking. Always the
    /// same: one that a crash left behind goes when the next file is made.
    private static let briefName = ".countersign-replay"
    /// This part of the file system stays free: others live in `/run`, and get into trouble when it is full.
    private static let reserve = 8
    /// The bytes after which the file system is asked again if it has room.
    private static let stride = 4 * 1024 * 1024

    private let descriptor: Int32
    /// The bytes that may be written before the file system is asked again.
    private var allowance = 0

    /// A file in `directory`, which is made if only it is missing and not its parent. `isNamed`: by way of a name, as
    /// on file systems that know no other.
    package init(directory: String, isNamed: Bool = false) throws(ReplayFileError) {
        do throws(ReplayFileError) {
            descriptor = try Self.open(directory, isNamed: isNamed)
        } catch {
            // A runtime directory that is nobody's yet, or that somebody cleared away while we run. The admin socket may
            // come to stand there too, hence its mode; the file's own is 0600 all the same.
            guard error.number == ENOENT, unsafe mkdir(directory, 0o755) == 0 else { throw error }
            descriptor = try Self.open(directory, isNamed: isNamed)
        }
    }

    deinit { close(descriptor) }

    /// Puts all of `bytes` at `offset`; `ENOSPC` also where that would leave too little of the file system to others.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ReplayFileError) {
        guard hasRoom(for: bytes.count) else { throw ReplayFileError(ENOSPC) }
        var done = 0
        while done < bytes.count {
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = unsafe pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 || errno != EINTR {
                throw ReplayFileError(count == 0 ? ENOSPC : errno)
            }
        }
    }

    /// Fills all of `buffer` with what was put at `offset`.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ReplayFileError) {
        var done = 0
        while done < buffer.count {
            let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
            let count = unsafe pread(descriptor, rest.baseAddress, rest.count, off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 || errno != EINTR {
                throw ReplayFileError(count == 0 ? EIO : errno)
            }
        }
    }

    /// Returns whether `count` bytes more leave enough of the file system to others. While there is plenty, the file system is asked
    /// once for each `stride` of them.
    private func hasRoom(for count: Int) -> Bool {
        if count <= allowance {
            allowance -= count
            return true
        }
        allowance = 0
        var system = statvfs()
        // A tmpfs without a limit says that it has no blocks.
        guard unsafe fstatvfs(descriptor, &system) == 0, system.f_blocks > 0, system.f_frsize > 0 else { return true }
        guard system.leaves(aPartOf: Self.reserve, after: count) else { return false }
        if count < Self.stride, system.leaves(aPartOf: Self.reserve, after: Self.stride) {
            allowance = Self.stride - count
        }
        return true
    }

    private static func open(_ directory: String, isNamed: Bool) throws(ReplayFileError) -> Int32 {
        #if arch(x86_64) || arch(arm64)
            // O_TMPFILE, which Swift's Glibc does not export. O_EXCL: nobody can give it a name later.
            let flags = 0o20_000_000 | O_DIRECTORY | O_EXCL | O_RDWR | O_CLOEXEC
            let descriptor = isNamed ? -1 : unsafe Glibc.open(directory, flags, 0o600)
            if descriptor >= 0 { return descriptor }
            // Not every file system has them; these two errors say so.
            if !isNamed, errno != EOPNOTSUPP, errno != EISDIR { throw ReplayFileError(errno) }
        #endif
        return try openNamed("\(directory)/\(briefName)")
    }

    private static func openNamed(_ path: String) throws(ReplayFileError) -> Int32 {
        for _ in 0..<64 {
            let descriptor = unsafe Glibc.open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0o600)
            let number = errno
            // Ours, one that a crash left, or one of another worker that is just about to do the same.
            if descriptor >= 0 || number == EEXIST { unsafe unlink(path) }
            if descriptor >= 0 { return descriptor }
            guard number == EEXIST else { throw ReplayFileError(number) }
        }
        throw ReplayFileError(EEXIST)
    }
}

extension statvfs {
    /// Returns whether a `part`-th of the file system is free after `count` bytes more.
    fileprivate func leaves(aPartOf part: Int, after count: Int) -> Bool {
        let (left, isLess) = (f_bavail &* f_frsize).subtractingReportingOverflow(UInt(count))
        return !isLess && left / f_frsize >= f_blocks / UInt(part)
    }
}
