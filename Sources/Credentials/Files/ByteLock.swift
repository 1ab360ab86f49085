// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc
internal import System

/// A locked byte of a file, which one holder has among all processes, and within this one.
///
/// The kernel unlocks it at the end of a process. A program that is started meanwhile does not inherit it.
final class ByteLock: Sendable {
    private let file: Descriptor
    private let offset: Int64

    /// Locks a byte of the file at `path`, which is created with mode 0600 if missing, and stays.
    ///
    /// Returns `nil` if another holder has the byte. A file that root creates belongs to the owner of the directory.
    static func acquire(_ path: String, at offset: Int64) throws(FileFault) -> ByteLock? {
        do throws(SystemError) {
            let file = try JudgedDirectory(of: path, followingLast: false).openLock()
            let result = clinux_lock_byte(file.number, offset, 1)
            if result == -EAGAIN || result == -EACCES { return nil }
            guard result == 0 else { throw SystemError(code: -result) }
            return ByteLock(file, offset)
        } catch {
            throw .system("lock", path, error.code)
        }
    }

    private init(_ file: consuming Descriptor, _ offset: Int64) {
        self.file = file
        self.offset = offset
    }

    /// Unlocks the byte at once, even if a copy of the descriptor exists in a program that is just being started.
    func release() { _ = clinux_lock_byte(file.number, offset, 0) }
}
