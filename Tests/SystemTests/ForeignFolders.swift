// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import System

/// A directory of user 65534, the service, beside one of root that stands for the system. Removed at the end.
final class ForeignFolders {
    static let user: uid_t = 65_534
    let root: String
    var service: String { "\(root)/service" }
    var system: String { "\(root)/etc" }
    var victim: String { "\(root)/etc/passwd" }

    init() throws {
        root = try TemporaryDirectory.make(prefix: "judged")
        try make(service, of: Self.user)
        try make(system, of: 0)
        try FileSystem.write(Array("root".utf8), to: victim, mode: 0o600)
    }

    deinit { TemporaryDirectory.remove(root) }

    func make(_ path: String, of owner: uid_t, mode: mode_t = 0o700) throws {
        try FileSystem.makeDirectory(path, mode: 0o700)
        try FileSystem.setMode(mode, of: path)
        try #require(unsafe chown(path, owner, owner) == 0)
    }

    func link(_ path: String, to target: String, of owner: uid_t = 0) throws {
        try #require(unsafe symlink(target, path) == 0)
        try #require(unsafe lchown(path, owner, owner) == 0)
    }

    /// Writes a file of the service.
    func file(_ path: String) throws {
        try FileSystem.write(Array("own".utf8), to: path, mode: 0o600)
        try #require(unsafe chown(path, Self.user, Self.user) == 0)
    }

    /// Moves a directory of the service away, and places a link to the system's in its place.
    func swap(_ path: String) {
        unsafe rename(path, "\(service)/moved")
        unsafe symlink(system, path)
    }

    func text(_ path: String) -> String {
        String(decoding: (try? FileSystem.contents(of: path, limit: 100)) ?? [], as: UTF8.self)
    }

    /// True if the file of the system is as it was.
    var isUntouched: Bool {
        guard let status = try? FileSystem.status(of: victim) else { return false }
        return text(victim) == "root" && status.st_uid == 0 && status.st_mode & 0o7777 == 0o600
            && DirectoryListing.names(in: system) == ["passwd"]
    }
}
