// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Testing

@testable import Proxy

@Suite("Names of a connection's ends in Forwarded")
struct CallerFieldsTests {
    @Test(
        "an element of Forwarded quotes values that are not tokens",
        arguments: [
            (SocketName.ipv4("127.0.0.1", port: 5), "localhost", "for=127.0.0.1;host=localhost;proto=http"),
            (.ipv4("127.0.0.1", port: 5), "localhost:80", #"for=127.0.0.1;host="localhost:80";proto=http"#),
            (.ipv6("::1", port: 5), "[::1]:80", #"for="[::1]";host="[::1]:80";proto=http"#),
            (.nameless, "bank.localhost", "for=unknown;host=bank.localhost;proto=http"),
            (.nameless, nil, "for=unknown;proto=http"),
        ] as [(SocketName, String?, String)])
    func element(peer: SocketName, host: String?, expected: String) {
        #expect(CallerFields.element(for: peer, host: host.map { Array($0.utf8) }) == Array(expected.utf8))
    }

    @Test("both ends of a connection have names, over IPv4 and IPv6, and Unix sockets have none")
    func names() throws {
        for (family, host) in [(AF_INET, "127.0.0.1"), (AF_INET6, "::1")] {
            let listener = socket(family, Int32(SOCK_STREAM.rawValue), 0)
            let caller = socket(family, Int32(SOCK_STREAM.rawValue), 0)
            defer {
                close(listener)
                close(caller)
            }
            var version4 = sockaddr_in()
            version4.sin_family = sa_family_t(AF_INET)
            version4.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var version6 = sockaddr_in6()
            version6.sin6_family = sa_family_t(AF_INET6)
            version6.sin6_addr = in6addr_loopback
            func act(_ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
                if family == AF_INET {
                    return unsafe withUnsafePointer(to: &version4) { pointer in
                        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                            unsafe call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
                        }
                    }
                }
                return unsafe withUnsafePointer(to: &version6) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        unsafe call($0, socklen_t(MemoryLayout<sockaddr_in6>.size))
                    }
                }
            }
            // The machine may not have IPv6.
            guard unsafe act({ unsafe bind(listener, $0, $1) }) == 0 else {
                #expect(family == AF_INET6)
                continue
            }
            #expect(listen(listener, 1) == 0)
            let number = try #require(
                SocketName.local(of: listener).authority?.split(separator: ":").last.flatMap { UInt16($0) })
            version4.sin_port = number.bigEndian
            version6.sin6_port = number.bigEndian
            unsafe #expect(act { unsafe connect(caller, $0, $1) } == 0)
            let name: SocketName = family == AF_INET ? .ipv4(host, port: number) : .ipv6(host, port: number)
            #expect(SocketName.peer(of: caller) == name)
            #expect(name.authority == (family == AF_INET ? "\(host):\(number)" : "[\(host)]:\(number)"))
        }
        var pair: [Int32] = [0, 0]
        #expect(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        #expect(SocketName.peer(of: pair[0]) == .nameless)
        #expect(SocketName.local(of: pair[0]).authority == nil)
        for descriptor in pair { close(descriptor) }
        #expect(SocketName.peer(of: -1) == .nameless)
        #expect(SocketName.ipv4("127.0.0.1", port: 80).authority == "127.0.0.1")
        #expect(SocketName.ipv6("::1", port: 80).authority == "[::1]")
    }
}
