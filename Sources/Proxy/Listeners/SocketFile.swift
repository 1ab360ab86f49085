// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The name of a Unix socket in the file system, and which file it stood for when we bound to it.
package struct SocketFile: Sendable, Hashable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// The file that is at `path` now; `nil`: there is none.
    init?(at path: String) {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { return nil }
        self.path = path
        (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
    }

    /// Removes the name, unless it stands for another file by now. While our socket is open, no other file has its number.
    ///
    /// To be called while callers still get through to the socket: until then no other daemon takes the path, so that what was
    /// looked at is what is removed.
    func remove() {
        if SocketFile(at: path) == self { unsafe unlink(path) }
    }
}
