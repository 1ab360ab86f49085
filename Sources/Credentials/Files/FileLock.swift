// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// An exclusive lock among processes and threads, held until it goes. It is on a file of its own: the file that it
/// protects is replaced, and a lock would stay with the old one.
struct FileLock: ~Copyable {
    private let descriptor: Descriptor

    /// Waits until nobody else holds the lock on `path`, which is created with mode 0600 and stays.
    init(_ path: String) throws(FileFault) {
        descriptor = try Self.acquire(path)
    }

    /// Lets go. To be written at the end of what the lock protects, so that it does not go any earlier.
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
