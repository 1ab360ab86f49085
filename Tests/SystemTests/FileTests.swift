// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import System
import Testing

/// Runs `body` with a directory that is removed after it.
private func withDirectory(_ body: (String) throws -> Void) throws {
    let directory = try TemporaryDirectory.make(prefix: "system-tests")
    defer { TemporaryDirectory.remove(directory) }
    try body(directory)
}

@Suite("Files")
struct FileTests {
    @Test("a file is written with its mode, read, renamed and removed")
    func life() throws {
        try withDirectory { directory in
            let (path, other) = ("\(directory)/a", "\(directory)/b")
            let bytes = [UInt8](repeating: 7, count: 100_000)
            try FileSystem.write(bytes, to: path, mode: 0o600)
            #expect(try FileSystem.status(of: path).st_mode & 0o777 == 0o600)
            #expect(try FileSystem.contents(of: path, limit: 1 << 20) == bytes)
            #expect(try FileSystem.contents(of: path, limit: 70_000).count == 70_000)
            try FileSystem.rename(path, to: other)
            #expect(DirectoryListing.names(in: directory) == ["b"])
            try FileSystem.remove(other)
            #expect(throws: SystemError(code: ENOENT)) { try FileSystem.status(of: other) }
        }
    }

    @Test("a link is not written through, and its target is read")
    func links() throws {
        try withDirectory { directory in
            let (file, link) = ("\(directory)/file", "\(directory)/link")
            try FileSystem.write([1], to: file, mode: 0o600)
            try #require(unsafe symlink(file, link) == 0)
            #expect(throws: SystemError(code: ELOOP)) { try FileSystem.write([2], to: link, mode: 0o600) }
            #expect(try FileSystem.target(ofLink: link) == file)
            #expect(FileSystem.realPath(of: link) == FileSystem.realPath(of: file))
            #expect(try FileSystem.linkStatus(of: link).st_mode & S_IFMT == S_IFLNK)
            #expect(throws: SystemError(code: EINVAL)) { try FileSystem.target(ofLink: file) }
        }
    }

    @Test("a temporary directory goes with all that it holds, and without what its links lead to")
    func temporary() throws {
        try withDirectory { outside in
            try FileSystem.write([1], to: "\(outside)/kept", mode: 0o600)
            let directory = try TemporaryDirectory.make(prefix: "system-tests")
            #expect(try FileSystem.status(of: directory).st_mode & 0o777 == 0o700)
            try FileSystem.makeDirectory("\(directory)/inner", mode: 0o700)
            try FileSystem.write([1], to: "\(directory)/inner/file", mode: 0o600)
            try #require(unsafe symlink(outside, "\(directory)/link") == 0)
            TemporaryDirectory.remove(directory)
            #expect(!FileSystem.allows(directory, F_OK))
            #expect(FileSystem.allows("\(outside)/kept", R_OK))
        }
    }

    @Test("a descriptor is closed at the end of its lifetime, unless it was released")
    func descriptors() throws {
        func isOpen(_ number: Int32) -> Bool { fcntl(number, F_GETFD) >= 0 }
        let released = try FileSystem.open("/dev/null", O_RDONLY)
        #expect(isOpen(released) && fcntl(released, F_GETFD) & FD_CLOEXEC != 0)
        do {
            _ = Descriptor(owning: released)
        }
        #expect(!isOpen(released))
    }

    @Test("bytes pass through a pipe, its end is the end of the file, and the ready side is reported")
    func pipe() throws {
        let pipe = try Pipe()
        for end in [pipe.reader.number, pipe.writer.number] { #expect(fcntl(end, F_GETFD) & FD_CLOEXEC != 0) }
        #expect(try !DescriptorIO.waitUntilReadable(pipe.reader.number, within: .zero))
        try DescriptorIO.writeAll([1, 2, 3].span, to: pipe.writer.number)
        #expect(try DescriptorIO.waitUntilReadable(anyOf: [-1, pipe.reader.number], within: .zero) == [false, true])
        #expect(try DescriptorIO.read(from: pipe.reader.number, atMost: 2) == [1, 2])
        #expect(try DescriptorIO.read(from: pipe.reader.number, atMost: 2) == [3])
        #expect(try DescriptorIO.waitUntilWritable(pipe.writer.number, within: .zero))
        #expect(throws: SystemError(code: EBADF)) { try DescriptorIO.read(from: -1, atMost: 1) }
    }
}
