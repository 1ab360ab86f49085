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

/// User IDs as this process sees them (user_namespaces(7)).
///
/// In a namespace with only some of the machine's users, the kernel reports "nobody" (65534) for all others. That
/// number then identifies no user: a program of any of them would pass for the one that `users: [nobody]` means.
package enum UserNamespace {
    /// Returns true if `uid` may mean several users here.
    package static func isAmbiguous(_ uid: UInt32) -> Bool { uid == stranger }

    /// User ID that stands for all users outside this namespace; nil if it maps all users.
    private static let stranger = stranger(
        map: text(of: "/proc/self/uid_map"), overflow: text(of: "/proc/sys/kernel/overflowuid"))

    /// Returns the overflow ID unless all users are mapped.
    ///
    /// `map` has lines of "first inside, first outside, count"; `overflow` is the kernel's overflow ID. Without `map`,
    /// the kernel has no namespaces. Without `overflow`, /proc is hidden, and the default 65534 is assumed.
    static func stranger(map: String?, overflow: String?) -> UInt32? {
        guard let map else { return nil }
        var known: UInt64 = 0
        for line in map.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 3, let count = UInt32(words[2]) else { continue }
            known += UInt64(count)
        }
        // The highest number is never a user's (credentials(7)).
        guard known < UInt64(UInt32.max) else { return nil }
        return overflow.flatMap { UInt32($0.prefix { $0.isWholeNumber }) } ?? 65_534
    }

    /// Returns the text of a file; empty if it exists but cannot be read, so that nothing counts as known.
    private static func text(of path: String) -> String? {
        do throws(SystemError) {
            return String(decoding: try FileSystem.contents(of: path, limit: 4096), as: UTF8.self)
        } catch {
            return error.code == ENOENT ? nil : ""
        }
    }
}
