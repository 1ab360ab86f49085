// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// Which numbers the kernel tells this process for users (user_namespaces(7)).
///
/// In a namespace that knows only some of the machine's users, the kernel says "nobody" (65534) for all others. That
/// number is then no user's: a program of any of them would pass for the one whom `users: [nobody]` means.
package enum UserNamespace {
    /// Returns whether `uid` may stand for several users here.
    package static func isAmbiguous(_ uid: UInt32) -> Bool { uid == stranger }

    /// The number of all users that this namespace does not know; `nil` where it knows all.
    private static let stranger = stranger(
        map: text(of: "/proc/self/uid_map"), overflow: text(of: "/proc/sys/kernel/overflowuid"))

    /// `map`: lines of "first here, first outside, how many"; `overflow`: the number told for the others. Where a text is
    /// missing, the kernel has no namespaces, or its setting is hidden from us and taken for what it is everywhere.
    static func stranger(map: String?, overflow: String?) -> UInt32? {
        guard let map else { return nil }
        var known: UInt64 = 0
        for line in map.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count == 3, let count = UInt32(words[2]) else { continue }
            known += UInt64(count)
        }
        // The last number of all is no user (credentials(7)).
        guard known < UInt64(UInt32.max) else { return nil }
        return overflow.flatMap { UInt32($0.prefix { $0.isWholeNumber }) } ?? 65_534
    }

    /// Returns the text of a file; empty if it is there and cannot be read, so that nothing is taken as known.
    private static func text(of path: String) -> String? {
        do throws(SystemError) {
            return String(decoding: try FileSystem.contents(of: path, limit: 4096), as: UTF8.self)
        } catch {
            return error.code == ENOENT ? nil : ""
        }
    }
}
