// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
import Testing

@testable import Systemd

@Suite("Socket activation")
struct ListenSocketsTests {
    @Test("two passed sockets arrive by name: listening, non-blocking, closed on exec, and not passed to helpers")
    func taken() async {
        await #expect(processExitsWith: .success) {
            alone {
                let first = try listening()
                let second = try listening()
                pass([first.descriptor, second.descriptor], names: "public:admin")
                let sockets = try ListenSockets.take().sockets
                require(sockets.descriptors == ["public": [3], "admin": [4]])
                for descriptor in [Int32(3), 4] {
                    require(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
                    require(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
                }
                for name in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] {
                    require(unsafe getenv(name) == nil)
                }
                require(try ListenSockets.take().sockets == ListenSockets())
            }
        }
    }

    @Test("passed sockets of one name keep the order of the unit")
    func sharedName() async {
        await #expect(processExitsWith: .success) {
            alone {
                let first = try listening()
                let second = try listening()
                pass([first.descriptor, second.descriptor], names: "public:public")
                require(try ListenSockets.take().sockets.descriptors == ["public": [3, 4]])
            }
        }
    }

    @Test("a process without socket activation has no sockets")
    func notActivated() async {
        await #expect(processExitsWith: .success) {
            alone {
                setVariable("LISTEN_FDS", nil)
                require(try ListenSockets.take().sockets == ListenSockets())
            }
        }
    }

    @Test("stored descriptors are distinguished from sockets by name and kind")
    func stored() async {
        await #expect(processExitsWith: .success) {
            alone {
                let first = try listening()
                let second = try listening()
                let memory = try SealedMemory.make([1, 2, 3], named: "test")
                pass([first.descriptor, memory, second.descriptor], names: "public:sessions:sessions")
                let (sockets, stored) = try ListenSockets.take(stored: DescriptorName(rawValue: "sessions"))
                require(sockets.descriptors == ["public": [3], "sessions": [5]])
                require(stored == [4] && fcntl(4, F_GETFD) == FD_CLOEXEC)
                require(try SealedMemory.read(4) == [1, 2, 3])
            }
        }
    }

    @Test("a passed socket that is a datagram socket or not listening is refused by name")
    func wrongKind() async {
        await #expect(processExitsWith: .success) {
            alone {
                let datagrams = try UnixSocket(SOCK_DGRAM)
                pass([datagrams.descriptor], names: "public")
                require(refusal() == .notListening(name: "public", descriptor: 3))
            }
        }
        await #expect(processExitsWith: .success) {
            alone {
                let idle = try UnixSocket(SOCK_STREAM)
                pass([idle.descriptor], names: "public")
                require(refusal() == .notListening(name: "public", descriptor: 3))
            }
        }
    }

    @Test("a malformed LISTEN_FDS is an error")
    func damaged() async {
        await #expect(processExitsWith: .success) {
            alone {
                setVariable("LISTEN_PID", String(getpid()))
                setVariable("LISTEN_FDS", "many")
                require(refusal() == .refused(errno: EINVAL))
            }
        }
    }

    @Test("passed sockets that match the configuration are claimed, even if two listeners share one")
    func claimed() throws {
        let sockets = ListenSockets(descriptors: ["public": [3, 5], "admin": [4]])
        #expect(try sockets.claim(["admin", "public", "admin"]) == ["public": [3, 5], "admin": [4]])
        #expect(try ListenSockets().claim([]).isEmpty)
    }

    @Test("an unclaimed socket and a missing one are one error with both names and remedies")
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

/// Runs `body` in a fork with one thread, and ends this process with its exit status.
///
/// The descriptors from 3 on may belong to the test library, which reports each #expect on them, or to libdispatch, which
/// traps if they are closed. In the fork no other code uses them.
private func alone(_ body: () throws -> Void) {
    let child = fork()
    if child == 0 {
        do {
            try body()
        } catch {
            require(false)
        }
        _exit(EXIT_SUCCESS)
    }
    var status: Int32 = -1
    while child > 0, unsafe waitpid(child, &status, 0) < 0, errno == EINTR {}
    exit(status == 0 ? EXIT_SUCCESS : EXIT_FAILURE)
}

private func require(_ condition: @autoclosure () throws -> Bool, line: Int = #line) {
    let holds = (try? condition()) ?? false
    guard !holds else { return }
    let text = Array("ListenSocketsTests.swift:\(line): does not hold\n".utf8)
    _ = unsafe write(STDERR_FILENO, text, text.count)
    _exit(EXIT_FAILURE)
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

/// Passes descriptors as the service manager does before it starts a service.
private func pass(_ descriptors: [Int32], names: String) {
    // First moved out of the target range, so that no copy overwrites the next one.
    let copies = descriptors.map { fcntl($0, F_DUPFD, 64) }
    for (index, copy) in copies.enumerated() { dup2(copy, Int32(3 + index)) }
    setVariable("LISTEN_PID", String(getpid()))
    setVariable("LISTEN_FDS", String(descriptors.count))
    setVariable("LISTEN_FDNAMES", names)
}
