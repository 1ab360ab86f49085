// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import System
import Testing

@testable import Credentials

/// Directory of one test, removed with its content when this object is deallocated.
final class TemporaryDirectory: Sendable {
    let path: String

    init() throws {
        var template = Array("/tmp/countersign-test-XXXXXX".utf8CString)
        let made = unsafe template.withUnsafeMutableBufferPointer { buffer -> String? in
            guard let start = buffer.baseAddress, let path = unsafe mkdtemp(start) else { return nil }
            return unsafe String(cString: path)
        }
        path = try #require(made)
    }

    deinit {
        remove(path)
    }

    /// Returns the path of `name` in the directory.
    func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Writes a file of that mode; returns its path.
    @discardableResult
    func write(_ content: [UInt8], to name: String, mode: mode_t = 0o600) throws -> String {
        let path = file(name)
        let descriptor = try Descriptor(opening: path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600)
        try descriptor.writeAll(content)
        try #require(fchmod(descriptor.number, mode) == 0)
        return path
    }

    @discardableResult
    func write(_ text: String, to name: String, mode: mode_t = 0o600) throws -> String {
        try write(Array(text.utf8), to: name, mode: mode)
    }

    func read(_ name: String) throws -> [UInt8] {
        try Descriptor(opening: file(name), O_RDONLY).readAll(limit: 1 << 24)
    }

    func mode(of name: String) throws -> mode_t {
        var status = stat()
        try #require(unsafe stat(file(name), &status) == 0)
        return status.st_mode & 0o7777
    }

    /// Sets a file's times `seconds` back.
    func age(_ name: String, seconds: Int) throws {
        let then = timespec(tv_sec: time(nil) - seconds, tv_nsec: 0)
        try #require(unsafe utimensat(AT_FDCWD, file(name), [then, then], 0) == 0)
    }

    var names: [String] { DirectoryListing.names(in: path) ?? [] }

    private func remove(_ path: String) {
        for name in DirectoryListing.names(in: path) ?? [] {
            if unsafe unlink("\(path)/\(name)") != 0 { remove("\(path)/\(name)") }
        }
        unsafe rmdir(path)
    }
}
