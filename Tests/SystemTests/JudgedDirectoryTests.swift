// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import System

@Suite("Root in a directory of another user", .enabled(if: geteuid() == 0))
struct JudgedDirectoryTests {
    private let folders: ForeignFolders

    init() throws { folders = try ForeignFolders() }

    private func error(_ path: String, followingLast: Bool = true) -> Int32? {
        do throws(SystemError) {
            _ = try JudgedDirectory(of: path, followingLast: followingLast)
            return nil
        } catch {
            return error.code
        }
    }

    private func code(_ work: () throws(SystemError) -> Void) -> Int32? {
        do throws(SystemError) {
            try work()
            return nil
        } catch {
            return error.code
        }
    }

    @Test("a link in a directory that another user can change is not followed, whoever owns the link")
    func untrustedLinks() throws {
        try folders.make("\(folders.root)/open", of: 0, mode: 0o777)
        for (folder, owner) in [("service", ForeignFolders.user), ("service", 0), ("open", 0)] {
            let link = "\(folders.root)/\(folder)/link\(owner)"
            try folders.link(link, to: folders.system, of: owner)
            #expect(error("\(link)/passwd") == ELOOP, "\(link)")
            #expect(error(link) == ELOOP)
            #expect(error(link, followingLast: false) == nil)
            #expect(throws: SystemError(code: ELOOP)) { try JudgedDirectory(at: link) }
        }
    }

    @Test("a link of another user in a directory of root is not followed")
    func foreignLink() throws {
        try folders.link("\(folders.root)/link", to: "etc", of: ForeignFolders.user)
        #expect(error("\(folders.root)/link/passwd") == ELOOP)
    }

    @Test("a link that only root can have placed is followed, relative or not, also to a file that does not exist yet")
    func trustedLinks() throws {
        try folders.make("\(folders.root)/private", of: 0)
        try folders.make("\(folders.root)/private/state", of: ForeignFolders.user)
        try folders.link("\(folders.root)/relative", to: "private/./state")
        try folders.link("\(folders.root)/private/up", to: "../relative/file")
        try folders.link("\(folders.root)/whole", to: "\(folders.root)/private/up")
        for path in ["relative/file", "private/up", "whole", "private/../whole", "service/../relative//file"] {
            let directory = try JudgedDirectory(of: "\(folders.root)/\(path)", followingLast: true)
            #expect(directory.name == "file" && directory.exclusiveOwner == ForeignFolders.user, "\(path)")
        }
        let directory = try JudgedDirectory(at: "\(folders.root)/relative/")
        #expect(directory.name == "." && directory.exclusiveOwner == ForeignFolders.user)
        #expect(error("\(folders.root)/gone/file") == ENOENT)
        try folders.link("\(folders.root)/circle", to: "circle")
        #expect(error("\(folders.root)/circle") == ELOOP)
    }

    @Test("a link of root in a directory such as /tmp is followed unless it may be another user's second name of it")
    func stickyDirectory() throws {
        let sticky = "\(folders.root)/tmp"
        try folders.make(sticky, of: 0, mode: 0o1777)
        try folders.link("\(sticky)/data", to: folders.system)
        #expect(error("\(sticky)/data/passwd") == nil)
        try folders.link("\(sticky)/theirs", to: folders.system, of: ForeignFolders.user)
        #expect(error("\(sticky)/theirs/passwd") == ELOOP)
        try folders.link("\(folders.root)/link", to: folders.system)
        try FileSystem.link("\(folders.root)/link", to: "\(sticky)/second")
        #expect(error("\(sticky)/second/passwd") == ELOOP)
    }

    @Test("a directory that is swapped for a link after its judgement is not entered")
    func swappedStep() throws {
        let inner = "\(folders.service)/inner"
        try folders.make(inner, of: ForeignFolders.user)
        #expect(throws: SystemError(code: ENOTDIR)) {
            try Folder.walk("\(inner)/passwd", followingLast: true) { if $0 == "inner" { folders.swap(inner) } }
        }
    }

    @Test("`..` leads back to the directory from which the path came, also if that one was moved meanwhile")
    func parent() throws {
        let inner = "\(folders.service)/inner"
        try folders.make(inner, of: ForeignFolders.user)
        let walked = try Folder.walk("\(inner)/../passwd", followingLast: true) {
            if $0 == ".." { unsafe rename(inner, "\(folders.system)/inner") }
        }
        #expect(try walked.folder.status.st_ino == FileSystem.status(of: folders.service).st_ino)
    }

    @Test("what root does in a directory happens there, although its path leads elsewhere by then")
    func swappedDirectory() throws {
        let inner = "\(folders.service)/inner"
        try folders.make(inner, of: ForeignFolders.user)
        let directory = try JudgedDirectory(of: "\(inner)/passwd", followingLast: true)
        folders.swap(inner)
        try directory.adoptOwner(try directory.create("new"))
        try directory.rename("new", to: directory.name)
        #expect(try directory.names() == ["passwd"])
        try directory.link(directory.name, to: "shadow")
        #expect(try FileSystem.status(of: "\(folders.service)/moved/shadow").st_uid == ForeignFolders.user)
        try directory.remove(directory.name)
        #expect(DirectoryListing.names(in: "\(folders.service)/moved") == ["shadow"])
        _ = try JudgedDirectory(of: "\(folders.service)/moved/log", followingLast: false).openLog(mode: 0o640)
        #expect(try FileSystem.status(of: "\(folders.service)/moved/log").st_uid == ForeignFolders.user)
        #expect(folders.isUntouched)
    }

    @Test("a second name of a file of the system is neither opened nor changed")
    func hardLink() throws {
        try FileSystem.link(folders.victim, to: "\(folders.service)/file")
        let directory = try JudgedDirectory(of: "\(folders.service)/file", followingLast: false)
        #expect(code { () throws(SystemError) in _ = try directory.open("file", O_RDONLY) } == EMLINK)
        #expect(code { () throws(SystemError) in _ = try directory.openLock() } == EMLINK)
        #expect(code { () throws(SystemError) in _ = try directory.openLog(mode: 0o640) } == EMLINK)
        // A new file does not get that one's owner by it, either: it is the directory's.
        #expect(folders.isUntouched)
    }

    @Test("a file of the service may have two names, and one of root that has one name is opened")
    func ownFiles() throws {
        try folders.file("\(folders.service)/one")
        try FileSystem.link("\(folders.service)/one", to: "\(folders.service)/two")
        try FileSystem.write([1], to: "\(folders.service)/root", mode: 0o600)
        let directory = try JudgedDirectory(at: folders.service)
        for name in ["one", "two", "root"] { _ = try directory.open(name, O_RDWR) }
        let second = try JudgedDirectory(of: "\(folders.system)/second", followingLast: false)
        try FileSystem.link(folders.victim, to: "\(folders.system)/second")
        _ = try second.open("second", O_RDONLY)
    }

    @Test("a pipe in place of a file is refused at once, unless it is a log")
    func pipe() throws {
        let path = "\(folders.service)/pipe"
        try #require(unsafe mkfifo(path, 0o600) == 0)
        try #require(unsafe chown(path, ForeignFolders.user, ForeignFolders.user) == 0)
        let directory = try JudgedDirectory(of: path, followingLast: false)
        #expect(code { () throws(SystemError) in _ = try directory.open("pipe", O_RDONLY) } == ENXIO)
        #expect(code { () throws(SystemError) in _ = try directory.openLock() } == ENXIO)
        try directory.openLog(mode: 0o640).writeAll([1])
    }

    @Test("the device of the system is no file of a service")
    func device() throws {
        let path = "\(folders.service)/null"
        guard unsafe mknod(path, S_IFCHR | 0o666, 0x103) == 0 else { return }
        let directory = try JudgedDirectory(of: path, followingLast: false)
        #expect(code { () throws(SystemError) in _ = try directory.openLog(mode: 0o640) } != nil)
        #expect(code { () throws(SystemError) in _ = try directory.openLock() } != nil)
    }

    @Test("a link in place of a file is not opened, locked or written")
    func links() throws {
        try folders.link("\(folders.service)/file", to: folders.victim, of: ForeignFolders.user)
        let directory = try JudgedDirectory(of: "\(folders.service)/file", followingLast: false)
        #expect(code { () throws(SystemError) in _ = try directory.open("file", O_RDONLY) } == ELOOP)
        #expect(code { () throws(SystemError) in _ = try directory.openLock() } == ELOOP)
        #expect(code { () throws(SystemError) in _ = try directory.openLog(mode: 0o640) } == ELOOP)
        #expect(code { () throws(SystemError) in _ = try directory.target(ofLink: "file") } == ELOOP)
        #expect(folders.isUntouched)
    }
}

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
