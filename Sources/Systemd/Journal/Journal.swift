// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CSystemd
internal import Glibc

/// The journal of systemd, over its native protocol.
package enum Journal {
    /// Sends an entry; an empty one is left out.
    ///
    /// It can wait for as long as journald's queue is full. That it returns does not mean that anybody listens: the
    /// library reports success without a journal too, so ask ``isStream(descriptor:environment:)`` first.
    package static func send(_ entry: JournalEntry) throws(JournalError) {
        guard !entry.ends.isEmpty else { return }
        let result = unsafe entry.arena.withUnsafeBytes { arena -> Int32 in
            var vectors: [iovec] = unsafe []
            var start = 0
            for end in entry.ends {
                // sendv reads only; the type has no const.
                let base = unsafe UnsafeMutableRawPointer(mutating: arena.baseAddress?.advanced(by: start))
                unsafe vectors.append(iovec(iov_base: base, iov_len: end - start))
                start = end
            }
            return unsafe sd_journal_sendv(vectors, Int32(vectors.count))
        }
        guard result == 0 else { throw JournalError(errno: 0 &- result) }
    }

    /// Whether `descriptor` (standard error, mostly) is the stream to the journal that the service manager opened.
    ///
    /// `JOURNAL_STREAM` holds the device and the inode of that stream (systemd.exec(5)). Where standard error was
    /// redirected since, or the variable was inherited from some other service, they differ: then what is written to
    /// the descriptor goes elsewhere, and so must the log.
    package static func isStream(descriptor: Int32, environment: [String: String]) -> Bool {
        guard let text = environment["JOURNAL_STREAM"], let stream = JournalStream(text) else { return false }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { return false }
        return stream == JournalStream(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    }
}

/// The journal did not take an entry.
package struct JournalError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The `errno` of `sd_journal_sendv`.
    package let errno: Int32

    /// One sentence.
    package var description: String { "the journal did not take the entry: \(systemMessage(errno))" }
}

/// A file by its identity: `DEVICE:INODE`, both decimal.
struct JournalStream: Equatable {
    let device: UInt64
    let inode: UInt64

    init(device: UInt64, inode: UInt64) {
        self.device = device
        self.inode = inode
    }

    /// The value of `JOURNAL_STREAM`, or nil where it is none.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let device = UInt64(parts[0]), let inode = UInt64(parts[1]) else { return nil }
        self.init(device: device, inode: inode)
    }
}
