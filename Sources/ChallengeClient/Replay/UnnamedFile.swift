// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// An unnamed file in a directory (`O_TMPFILE`, open(2)), which leaves nothing after a crash.
///
/// Only the daemon's own user can reach the file. Its calls block the loop. The directory is the runtime directory,
/// which is in memory (tmpfs) if systemd or XDG provide it: a call is then a copy of at most
/// `ReplayBuffer.recentLimit`, about fifty microseconds. On a disk, a call is a copy into the page cache, until the
/// kernel throttles writers with too many dirty pages. A separate thread would cost two thread switches for each piece,
/// and the caller would be slowed down nevertheless.
package final class UnnamedFile: ReplayFile {
    /// The name between opening and unlinking on file systems without unnamed files. Always the same, so that a
    /// leftover of a crash is removed when the next file is made.
    private static let temporaryName = ".countersign-replay"
    /// The part of the file system that stays free. Others use `/run` too, and fail when it is full.
    private static let reserve = 8
    /// The number of bytes between two checks of the free space.
    private static let stride = 4 * 1024 * 1024

    private let descriptor: Int32
    /// The number of bytes that may be written before the next check.
    private var allowance = 0

    /// Creates a file in `directory`, which is made if missing. `isNamed`: by a temporary name, as on file systems
    /// without unnamed files.
    package init(directory: String, isNamed: Bool = false) throws(ReplayFileError) {
        do throws(ReplayFileError) {
            descriptor = try Self.open(directory, isNamed: isNamed)
        } catch {
            // The runtime directory was not made yet, or was removed while the process runs. The admin socket may be
            // created there later too, hence its mode; the file's own is 0600 in any case.
            guard error.number == ENOENT, unsafe mkdir(directory, 0o755) == 0 else { throw error }
            descriptor = try Self.open(directory, isNamed: isNamed)
        }
    }

    deinit { close(descriptor) }

    /// Writes all of `bytes` at `offset`; throws `ENOSPC` also to leave enough space to others.
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

    /// Fills all of `buffer` with the bytes written at `offset`.
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

    /// Returns true if `count` more bytes leave enough of the file system to others.
    ///
    /// With plenty of space the file system is asked only once per `stride`.
    private func hasRoom(for count: Int) -> Bool {
        if count <= allowance {
            allowance -= count
            return true
        }
        allowance = 0
        var system = statvfs()
        // A tmpfs without a limit reports no blocks.
        guard unsafe fstatvfs(descriptor, &system) == 0, system.f_blocks > 0, system.f_frsize > 0 else { return true }
        guard system.leaves(aPartOf: Self.reserve, after: count) else { return false }
        if count < Self.stride, system.leaves(aPartOf: Self.reserve, after: Self.stride) {
            allowance = Self.stride - count
        }
        return true
    }

    private static func open(_ directory: String, isNamed: Bool) throws(ReplayFileError) -> Int32 {
        #if arch(x86_64) || arch(arm64)
            // O_TMPFILE, which Swift's Glibc does not export. O_EXCL: the file cannot be given a name later.
            let flags = 0o20_000_000 | O_DIRECTORY | O_EXCL | O_RDWR | O_CLOEXEC
            let descriptor = isNamed ? -1 : unsafe Glibc.open(directory, flags, 0o600)
            if descriptor >= 0 { return descriptor }
            // The two errors of file systems without unnamed files.
            if !isNamed, errno != EOPNOTSUPP, errno != EISDIR { throw ReplayFileError(errno) }
        #endif
        return try openNamed("\(directory)/\(temporaryName)")
    }

    private static func openNamed(_ path: String) throws(ReplayFileError) -> Int32 {
        for _ in 0..<64 {
            let descriptor = unsafe Glibc.open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0o600)
            let number = errno
            // Ours, a leftover of a crash, or that of another worker in the same step.
            if descriptor >= 0 || number == EEXIST { unsafe unlink(path) }
            if descriptor >= 0 { return descriptor }
            guard number == EEXIST else { throw ReplayFileError(number) }
        }
        throw ReplayFileError(EEXIST)
    }
}

extension statvfs {
    /// Returns true if one `part`-th of the file system is free after `count` more bytes.
    fileprivate func leaves(aPartOf part: Int, after count: Int) -> Bool {
        let (left, isLess) = (f_bavail &* f_frsize).subtractingReportingOverflow(UInt(count))
        return !isLess && left / f_frsize >= f_blocks / UInt(part)
    }
}

/// A file for the part of one request's body beyond memory.
///
/// Unreachable for other processes, and deleted with this object. Used on one loop's thread.
package protocol ReplayFile: AnyObject {
    /// Writes all of `bytes` at `offset`. On failure, the bytes before that offset are unchanged.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ReplayFileError)
    /// Fills all of `buffer` with the bytes written at `offset`.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ReplayFileError)
}

/// A failure to open, write or read a file.
package struct ReplayFileError: Error, Sendable, Equatable {
    /// The system's error number.
    package let number: Int32

    /// Creates an error from the system's number.
    package init(_ number: Int32) { self.number = number }
}

/// One request's body on disk: its file, and its share of the budget until `deinit`.
final class SpooledBody {
    private let file: any ReplayFile
    private let spool: ReplaySpool
    private var reserved = 0

    init(file: any ReplayFile, spool: ReplaySpool) {
        self.file = file
        self.spool = spool
    }

    deinit { spool.release(reserved) }

    /// Writes `bytes` at `offset`. Returns false, after a report to the spool, if budget or file system refuse.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Bool {
        guard spool.reserve(bytes.count) else { return false }
        reserved += bytes.count
        do throws(ReplayFileError) {
            try unsafe file.write(bytes, at: offset)
        } catch {
            spool.recordFailure(.writing(error.number))
            return false
        }
        spool.recordSuccess()
        return true
    }

    /// Fills `buffer` with the bytes at `offset`. Returns false, after a report to the spool, on a failure.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) -> Bool {
        do throws(ReplayFileError) {
            try unsafe file.read(into: buffer, at: offset)
            return true
        } catch {
            spool.recordFailure(.reading(error.number))
            return false
        }
    }
}
