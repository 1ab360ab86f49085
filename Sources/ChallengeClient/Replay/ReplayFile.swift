// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// A file that holds one request's body beyond what memory keeps of it. Nobody else can reach it, and it is gone with
/// this object. Used on one loop's thread.
package protocol ReplayFile: AnyObject {
    /// Puts all of `bytes` at `offset`; where that fails, what was there before that offset still is.
    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ReplayFileError)
    /// Fills all of `buffer` with what was put at `offset`.
    func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(ReplayFileError)
}

/// Why a file could not be opened, written or read.
package struct ReplayFileError: Error, Sendable, Equatable {
    /// The system's error number.
    package let number: Int32

    /// An error of the system's.
    package init(_ number: Int32) { self.number = number }
}
