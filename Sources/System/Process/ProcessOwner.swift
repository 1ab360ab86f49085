// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// The users of other processes.
package enum ProcessOwner {
    /// Returns the real user ID of a process (proc(5)); nil if the process has ended, or /proc does not tell.
    ///
    /// The owner of the directory in /proc would be root for a process that forbids its tracing.
    package static func uid(of process: Int32) -> UInt32? {
        guard let bytes = try? FileSystem.contents(of: "/proc/\(process)/status", limit: 65_536) else { return nil }
        return uid(in: String(decoding: bytes, as: UTF8.self))
    }

    /// Returns the real user ID in the text of such a file.
    static func uid(in status: String) -> UInt32? {
        for line in status.split(separator: "\n") where line.hasPrefix("Uid:") {
            return line.dropFirst(4).split(whereSeparator: \.isWhitespace).first.flatMap { UInt32($0) }
        }
        return nil
    }
}
