// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import TestSupport
import Testing

@testable import Proxy

@Suite("Owners of sockets")
struct SocketOwnersTests {
    /// A connection within this process: the accepted end, and the caller's, which belongs to `uid`.
    private final class Pair {
        let listener: Int32
        let caller: Int32
        let accepted: Int32

        init(host: String = "127.0.0.1", uid: uid_t? = nil) throws {
            listener = try ListenPoint.tcp(host: host, port: 0).open()
            caller = try connectedSocket(to: host == "::" ? "127.0.0.1" : host, port: port(of: listener))
            // For the kernel the owner of a socket's file is the socket's.
            if let uid { #expect(fchown(caller, uid, gid_t.max) == 0) }
            var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            _ = unsafe poll(&entry, 1, 180_000)
            accepted = accept(listener, nil, nil)
            #expect(accepted >= 0)
        }

        /// Closes the caller's socket; its descriptor then refers to another file.
        func closeCaller() {
            let other = unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)
            #expect(dup2(other, caller) == caller)
            close(other)
        }

        deinit {
            for descriptor in [listener, caller, accepted] { close(descriptor) }
        }
    }

    @Test("a caller on loopback is known by the uid of its socket", arguments: ["127.0.0.1", "::1", "::", "127.0.0.2"])
    func known(host: String) throws {
        let pair = try Pair(host: host)
        let owners = SocketOwners()
        #expect(owners.canSee(pair.accepted))
        #expect(owners.caller(of: pair.accepted) == getuid())
    }

    @Test("another user's socket is attributed to that user", .enabled(if: getuid() == 0))
    func another() throws {
        let owners = SocketOwners()
        let (one, two) = try (Pair(uid: 12_345), Pair(host: "::1", uid: 23_456))
        #expect(owners.caller(of: one.accepted) == 12_345)
        #expect(owners.caller(of: two.accepted) == 23_456)
    }

    @Test("a caller that has half-closed its socket is known")
    func halfClosed() throws {
        let pair = try Pair()
        #expect(shutdown(pair.caller, Int32(SHUT_WR)) == 0)
        let owners = SocketOwners()
        #expect(owners.canSee(pair.accepted))
        #expect(owners.caller(of: pair.accepted) == getuid())
    }

    @Test("a caller that has closed its socket is nobody, and not root")
    func closed() throws {
        let owners = SocketOwners()
        let pair = try Pair()
        pair.closeCaller()
        #expect(owners.caller(of: pair.accepted) == nil)
        #expect(owners.canSee(pair.accepted))
    }

    @Test("a caller that has reset its connection is unknown, even if its port is used again")
    func reset() throws {
        let owners = SocketOwners()
        for attempt in 1... {
            let pair = try Pair()
            var option = linger(l_onoff: 1, l_linger: 0)
            _ = unsafe setsockopt(pair.caller, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            let callerPort = port(of: pair.caller)
            pair.closeCaller()
            let next: Int32
            do {
                next = try connectedSocket(to: "127.0.0.1", port: port(of: pair.listener), from: callerPort)
            } catch {
                // Another test may have taken the port first.
                if attempt < 10 { continue }
                throw error
            }
            defer { close(next) }
            #expect(owners.caller(of: pair.accepted) == nil)
            return
        }
    }

    @Test("a descriptor that is not a connected TCP socket has no caller")
    func noSocket() throws {
        let owners = SocketOwners()
        let listener = try ListenPoint.tcp(host: "127.0.0.1", port: 0).open()
        defer { close(listener) }
        #expect(owners.caller(of: listener) == nil)
        #expect(owners.caller(of: -1) == nil)
        #expect(!owners.canSee(listener))
    }
}

/// Returns a socket connected to an address of this machine, from any port or from `local`. With `uid` it belongs to
/// that user: for the kernel the owner of a socket's file is the socket's.
func connectedSocket(to host: String, port: UInt16, from local: UInt16 = 0, uid: uid_t? = nil) throws -> Int32 {
    let isV6 = host.contains(":")
    let descriptor = socket(isV6 ? AF_INET6 : AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    if let uid, fchown(descriptor, uid, gid_t.max) != 0 { throw Peer.Problem(doing: "give a socket away: \(errno)") }
    var one: Int32 = 1
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
    if local > 0 {
        guard unsafe withLoopback(port: local, { unsafe bind(descriptor, $0, $1) }) == 0 else {
            throw Peer.Problem(doing: "bind: \(errno)")
        }
    }
    var result: Int32 = -1
    if isV6 {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        _ = unsafe inet_pton(AF_INET6, host, &address.sin6_addr)
        result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    } else {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        _ = unsafe inet_pton(AF_INET, host, &address.sin_addr)
        result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
    guard result == 0 else { throw Peer.Problem(doing: "connect: \(errno)") }
    return descriptor
}
