// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import System

@Suite("Addresses of sockets")
struct SocketAddressTests {
    @Test("the path of a Unix socket has 1 to 107 bytes")
    func paths() {
        #expect(SocketAddress(unixPath: "") == nil)
        #expect(SocketAddress(unixPath: String(repeating: "a", count: 108)) == nil)
        #expect(SocketAddress(unixPath: String(repeating: "é", count: 54)) == nil)
        #expect(SocketAddress(unixPath: String(repeating: "a", count: 107))?.family == AF_UNIX)
        #expect(SocketAddress(unixPath: "a")?.hostAndPort == nil)
    }

    @Test("a Unix socket is bound at a path of the longest sort, and found there")
    func unix() throws {
        let directory = try TemporaryDirectory.make(prefix: "system-tests")
        defer { TemporaryDirectory.remove(directory) }
        let path = directory + "/" + String(repeating: "s", count: SocketAddress.longestPath - directory.utf8.count - 1)
        let address = try #require(SocketAddress(unixPath: path))
        let listener = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
        let early = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
        #expect(throws: SystemError(code: ENOENT)) { try address.connect(early.number) }
        try address.bind(listener.number)
        #expect(DirectoryListing.names(in: directory)?.count == 1)
        #expect(throws: SystemError(code: ECONNREFUSED)) { try address.connect(early.number) }
        let number = listener.number
        try systemCall { listen(number, 1) }
        try address.connect(early.number)
        #expect(Sockets.peerUser(of: early.number) == geteuid())
    }

    @Test("both ends of a connection on loopback have host and port")
    func loopback() throws {
        let listener = Descriptor(owning: try Sockets.makeStream(AF_INET))
        try SocketAddress(loopbackPort: 0).bind(listener.number)
        let number = listener.number
        try systemCall { listen(number, 1) }
        let local = try #require(SocketAddress.local(of: listener.number)?.hostAndPort)
        #expect(local.host == "127.0.0.1" && local.port > 0)
        let caller = Descriptor(owning: try Sockets.makeStream(AF_INET))
        try SocketAddress(loopbackPort: local.port).connect(caller.number)
        #expect(try #require(SocketAddress.peer(of: caller.number)?.hostAndPort) == local)
        #expect(SocketAddress.peer(of: listener.number) == nil)
        #expect(SocketAddress.local(of: -1) == nil)
        Sockets.setTimeouts(caller.number, receive: .milliseconds(1))
        #expect(throws: SystemError(code: EAGAIN)) { try DescriptorIO.read(from: caller.number, atMost: 1) }
    }

    @Test("a connection that is refused later says so, and one that was made does not")
    func pending() throws {
        let listener = Descriptor(owning: try Sockets.makeStream(AF_INET))
        try SocketAddress(loopbackPort: 0).bind(listener.number)
        let port = try #require(SocketAddress.local(of: listener.number)?.hostAndPort?.port)
        let caller = Descriptor(owning: try Sockets.makeNonblocking(AF_INET))
        let failure = #expect(throws: SystemError.self) { try SocketAddress(loopbackPort: port).connect(caller.number) }
        #expect(failure?.code == EINPROGRESS || failure?.code == ECONNREFUSED)
        if failure?.code == EINPROGRESS {
            #expect(try DescriptorIO.waitUntilWritable(caller.number, within: .seconds(60)))
            #expect(Sockets.pendingError(of: caller.number) == SystemError(code: ECONNREFUSED))
        }
        #expect(Sockets.pendingError(of: caller.number) == nil)
    }

    @Test("the resolver knows addresses in digits, and says why it knows no other host")
    func resolver() throws {
        let v4 = try #require(SocketAddress.resolve(host: "127.0.0.1", port: 80).first)
        #expect(v4.family == AF_INET && v4.hostAndPort.map { $0 == ("127.0.0.1", 80) } == true)
        let v6 = try #require(SocketAddress.resolve(host: "::1", port: 443).first)
        #expect(v6.family == AF_INET6 && v6.hostAndPort.map { $0 == ("::1", 443) } == true)
        let mapped = try #require(SocketAddress.resolve(host: "::ffff:192.0.2.1", port: 1).first)
        #expect(mapped.hostAndPort.map { $0 == ("192.0.2.1", 1) } == true)
        let error = #expect(throws: ResolverError.self) { try SocketAddress.resolve(host: "a..b", port: 1) }
        #expect(error?.description.isEmpty == false)
    }
}

@Suite("Answers of the kernel about sockets")
struct SocketAnswerTests {
    @Test("an answer counts only for a socket that is connected, held, and the one that was asked for")
    func answers() {
        let ends = SocketEnds(
            local: SocketEnd(high: 0, low: 0xFFFF_7F00_0001, port: 40_000),
            remote: SocketEnd(high: 0, low: 0xFFFF_7F00_0001, port: 80))
        func holder(
            _ state: SocketState, uid: UInt32 = 7, inode: UInt32 = 1, _ change: (inout SocketEnds) -> Void = { _ in }
        ) -> UInt32? {
            var told = ends
            change(&told)
            return SocketAnswer(state: UInt32(state.rawValue), uid: uid, inode: inode, ends: told).holder(of: ends)
        }
        #expect(holder(.established) == 7)
        #expect(holder(.finWait1) == 7)
        #expect(holder(.finWait2) == 7)
        // In TIME_WAIT the kernel does not know the uid, and reports 0.
        #expect(holder(.timeWait, uid: 0, inode: 0) == nil)
        #expect(holder(.timeWait) == nil)
        #expect(holder(.established, inode: 0) == nil)
        #expect(holder(.listen) == nil)
        #expect(holder(.closeWait) == nil)
        #expect(holder(.established, uid: .max) == nil)
        #expect(holder(.established) { $0.local.port = 0 } == nil)
        #expect(holder(.established) { $0.remote.low = 0 } == nil)
        #expect(holder(.established) { $0.local.high = 1 } == nil)
        #expect(holder(.established) { $0 = $0.reversed } == nil)
        #expect(SocketAnswer(state: .max, uid: 7, inode: 1, ends: ends).holder(of: ends) == nil)
    }

    @Test("the number of unknown users is nobody's where a namespace does not know all users")
    func namespaces() {
        #expect(UserNamespace.stranger(map: "         0          0 4294967295\n", overflow: "65534\n") == nil)
        #expect(UserNamespace.stranger(map: "0 0 1\n1 100000 65536\n", overflow: "65534\n") == 65_534)
        #expect(UserNamespace.stranger(map: "1000 1000 1\n", overflow: "99\n") == 99)
        #expect(UserNamespace.stranger(map: "1000 1000 1\n", overflow: nil) == 65_534)
        #expect(UserNamespace.stranger(map: "", overflow: "") == 65_534)
        #expect(UserNamespace.stranger(map: nil, overflow: nil) == nil)
    }
}

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
