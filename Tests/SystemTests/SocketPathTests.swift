// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import System

@Suite("Sockets of root in a directory of another user", .enabled(if: geteuid() == 0))
struct SocketPathTests {
    private let folders: ForeignFolders

    init() throws { folders = try ForeignFolders() }

    @Test("a socket gets its name and its permissions in the directory that was judged")
    func socket() throws {
        let path = "\(folders.service)/admin.sock"
        let socket = Descriptor(owning: try Sockets.makeNonblocking(AF_UNIX))
        try SocketPath.bind(socket.number, to: path, mode: 0o666)
        #expect(try FileSystem.linkStatus(of: path).st_mode == S_IFSOCK | 0o666)
        // Others at its path keep theirs.
        try FileSystem.link(path, to: "\(folders.root)/second")
        #expect(throws: SystemError(code: EPERM)) { try SocketPath.setMode(0o600, of: path) }
        try FileSystem.remove(path)
        for place in [FileSystem.link(_:to:), { (target: String, path: String) in try folders.link(path, to: target) }]
        {
            try place(folders.victim, path)
            #expect(throws: SystemError(code: EPERM)) { try SocketPath.setMode(0o666, of: path) }
            try FileSystem.remove(path)
        }
        folders.swap("\(folders.service)/inner")
        let other = Descriptor(owning: try Sockets.makeNonblocking(AF_UNIX))
        #expect(throws: SystemError(code: ELOOP)) {
            try SocketPath.bind(other.number, to: "\(folders.service)/inner/x.sock", mode: 0o666)
        }
        #expect(folders.isUntouched)
    }
}
