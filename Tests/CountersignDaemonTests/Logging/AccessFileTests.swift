// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import CountersignDaemon

@Suite("The file of the access log")
final class AccessFileTests {
    private let folder: String

    init() throws {
        folder = "/tmp/countersign-access-\(getpid())-\(UInt64.random(in: .min ... .max))"
        try #require(unsafe mkdir(folder, 0o700) == 0)
    }

    deinit {
        for name in ["file", "link", "second", "pipe"] { unsafe unlink("\(folder)/\(name)") }
        unsafe rmdir(folder)
    }

    private func path(_ name: String) -> String { "\(folder)/\(name)" }

    private func size(_ name: String) -> Int {
        var status = stat()
        return unsafe stat(path(name), &status) == 0 ? Int(status.st_size) : -1
    }

    @Test("the access log's file is created and appended to, also through our own links")
    func links() throws {
        try #require(unsafe symlink("file", path("link")) == 0)
        try #require(unsafe symlink(path("link"), path("second")) == 0)
        for name in ["file", "link", "second"] { try AccessFile(path(name)).write([.bytes(Array("line\n".utf8))]) }
        #expect(size("file") == 15)
    }

    @Test("the access log is not opened through a link of another user", .enabled(if: geteuid() == 0))
    func foreignLink() throws {
        try #require(unsafe symlink(path("file"), path("link")) == 0)
        try #require(unsafe lchown(path("link"), 4711, 4711) == 0)
        let error = #expect(throws: CompositionError.self) { try AccessFile(path("link")) }
        #expect(error.map { "\($0)" }?.contains("symbolic link created by uid 4711") == true)
        #expect(size("file") == -1)
    }

    @Test(
        "root appends to no file of the system in a directory of another user, and a new log is that user's",
        .enabled(if: geteuid() == 0))
    func foreignDirectory() throws {
        let victim = path("file")
        AccessFileTests.write("root", to: victim)
        let service = path("service")
        try #require(unsafe mkdir(service, 0o700) == 0 && chown(service, 4711, 4711) == 0)
        defer { unsafe rmdir(service) }
        let log = "\(service)/log"
        try #require(unsafe link(victim, log) == 0)
        let error = #expect(throws: CompositionError.self) { try AccessFile(log) }
        #expect(error.map { "\($0)" }?.contains("hard link") == true)
        unsafe unlink(log)
        // Also through a link of root, which another user could have moved there.
        try #require(unsafe symlink(victim, log) == 0)
        #expect(throws: CompositionError.self) { try AccessFile(log) }
        unsafe unlink(log)
        try #require(unsafe symlink(folder, "\(service)/inner") == 0)
        #expect(throws: CompositionError.self) { try AccessFile("\(service)/inner/file") }
        unsafe unlink("\(service)/inner")
        #expect(size("file") == 4)
        try AccessFile(log).write([.bytes(Array("line\n".utf8))])
        var status = stat()
        try #require(unsafe stat(log, &status) == 0)
        #expect(status.st_uid == 4711 && status.st_size == 5)
        unsafe unlink(log)
    }

    private static func write(_ text: String, to path: String) {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT, 0o600)
        unsafe Glibc.write(descriptor, text, text.utf8.count)
        close(descriptor)
    }

    @Test("an access log to a pipe without a reader never blocks")
    func pipe() throws {
        try #require(unsafe mkfifo(path("pipe"), 0o600) == 0)
        let file = try AccessFile(path("pipe"))
        file.write([.bytes(Array("first\n".utf8))])
        let reader = unsafe open(path("pipe"), O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        var bytes = [UInt8](repeating: 0, count: 64)
        #expect(unsafe read(reader, &bytes, bytes.count) == 6)
        // More than a pipe holds: the rest is dropped, and the call returns.
        file.write([.bytes([UInt8](repeating: 0x61, count: 1 << 20))])
    }

    @Test("an access log at a circular link or in a missing directory is an error")
    func circle() throws {
        try #require(unsafe symlink("second", path("link")) == 0)
        try #require(unsafe symlink("link", path("second")) == 0)
        #expect(throws: CompositionError.self) { try AccessFile(path("link")) }
        #expect(throws: CompositionError.self) { try AccessFile(path("gone/file")) }
    }

    @Test("the access log can be standard output by its path, even if that is a socket of the journal")
    func standardOutput() throws {
        _ = try AccessFile("/dev/stdout")
        _ = try AccessFile("/proc/self/fd/2")
        #expect(throws: CompositionError.self) { try AccessFile("/dev/fd/987654") }
    }
}
