// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

@testable import Systemd

@Suite("Socket activation")
struct ListenSocketsTests {
    @Test("two sockets arrive by their names: listening, non-blocking, closed on exec, and not passed on to helpers")
    func taken() async {
        await #expect(processExitsWith: .success) {
            let first = try listening()
            let second = try listening()
            pass([first.descriptor, second.descriptor], names: "public:admin")
            let sockets = try ListenSockets.take()
            require(sockets.descriptors == ["public": [3], "admin": [4]])
            for descriptor in [Int32(3), 4] {
                require(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
                require(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
            }
            for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
                require(unsafe getenv(name) == nil)
            }
            require(try ListenSockets.take() == ListenSockets())
        }
    }

    @Test("sockets of one name keep the order of the unit")
    func sharedName() async {
        await #expect(processExitsWith: .success) {
            let first = try listening()
            let second = try listening()
            pass([first.descriptor, second.descriptor], names: "public:public")
            require(try ListenSockets.take().descriptors == ["public": [3, 4]])
        }
    }

    @Test("a process that no socket activated has no sockets")
    func notActivated() async {
        await #expect(processExitsWith: .success) {
            setVariable("LISTEN_FDS", nil)
            require(try ListenSockets.take() == ListenSockets())
        }
    }

    @Test("a datagram socket, and one that does not listen, is refused by name")
    func wrongKind() async {
        await #expect(processExitsWith: .success) {
            let datagrams = try UnixSocket(SOCK_DGRAM)
            pass([datagrams.descriptor], names: "public")
            require(refusal() == .notListening(name: "public", descriptor: 3))
        }
        await #expect(processExitsWith: .success) {
            let idle = try UnixSocket(SOCK_STREAM)
            pass([idle.descriptor], names: "public")
            require(refusal() == .notListening(name: "public", descriptor: 3))
        }
    }

    @Test("a damaged LISTEN_FDS is an error, not an absence")
    func damaged() async {
        await #expect(processExitsWith: .success) {
            setVariable("LISTEN_PID", String(getpid()))
            setVariable("LISTEN_FDS", "many")
            require(refusal() == .refused(errno: EINVAL))
        }
    }

    @Test("names that agree with the configuration are claimed, also where a listener names one twice")
    func claimed() throws {
        let sockets = ListenSockets(descriptors: ["public": [3, 5], "admin": [4]])
        #expect(try sockets.claim(["admin", "public", "admin"]) == ["public": [3, 5], "admin": [4]])
        #expect(try ListenSockets().claim([]).isEmpty)
    }

    @Test("an unclaimed and a missing name are one error that names both sides and the remedies")
    func mismatch() throws {
        let sockets = ListenSockets(descriptors: ["spare": [3], "public": [4]])
        let error = try #require(throws: ListenSocketsError.self) { try sockets.claim(["public", "admin"]) }
        #expect(error == .mismatch(configured: ["admin", "public"], passed: ["public", "spare"]))
        #expect(
            error.description == """
                the configuration listens on systemd:admin, which the service manager did not pass (it passed "public", \
                "spare"); start the socket unit, or give it FileDescriptorName=admin; the service manager passed "spare", \
                which no listener of the configuration claims (it names "admin", "public"); add a listener with address: \
                systemd:spare, or disable that socket unit
                """)
    }
}

// The descriptors from 3 on may be those by which the test library hears of an #expect, so these tests tell their
// outcome by the exit status.
private func require(_ condition: @autoclosure () throws -> Bool, line: Int = #line) {
    let holds = (try? condition()) ?? false
    guard !holds else { return }
    let text = Array("ListenSocketsTests.swift:\(line): does not hold\n".utf8)
    _ = unsafe write(STDERR_FILENO, text, text.count)
    exit(EXIT_FAILURE)
}

private func refusal() -> ListenSocketsError? {
    do {
        _ = try ListenSockets.take()
        return nil
    } catch {
        return error
    }
}

private func listening() throws -> UnixSocket {
    let socket = try UnixSocket(SOCK_STREAM)
    guard listen(socket.descriptor, 1) == 0 else { throw SocketError(what: "listen: errno \(errno)") }
    return socket
}

/// Does what the service manager does before it starts a service.
private func pass(_ descriptors: [Int32], names: String) {
    // On a busy machine libdispatch may have begun to watch something in this process, by these very numbers. It traps where
    // they are taken from it, so that this run of the process shows nothing.
    for number in 3..<3 + descriptors.count where isAnonymous(number) {
        print("descriptor \(number) is libdispatch's own: nothing is tried in this process")
        exit(EXIT_SUCCESS)
    }
    // First away from where they go, so that no copy overwrites the next one.
    let copies = descriptors.map { fcntl($0, F_DUPFD, 64) }
    for (index, copy) in copies.enumerated() { dup2(copy, Int32(3 + index)) }
    setVariable("LISTEN_PID", String(getpid()))
    setVariable("LISTEN_FDS", String(descriptors.count))
    setVariable("LISTEN_FDNAMES", names)
}

/// Whether a descriptor of this process is that of an epoll, an eventfd or the like.
private func isAnonymous(_ descriptor: Int) -> Bool {
    var target = [CChar](repeating: 0, count: 64)
    let count = unsafe readlink("/proc/self/fd/\(descriptor)", &target, target.count)
    return count > 0
        && String(decoding: target.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .hasPrefix("anon_inode:")
}
