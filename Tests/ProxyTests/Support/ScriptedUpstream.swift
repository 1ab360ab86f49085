// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Synchronization
import TestSupport

/// Upstream whose every byte the test sends. It accepts a connection when the test asks for one.
final class ScriptedUpstream {
    let port: UInt16
    private let listener: Int32

    struct Problem: Error {
        var doing: String
    }

    /// Listens. `receiveBuffer`: size for the connections; with a small one few bytes are in transit.
    init(receiveBuffer: Int32? = nil) throws {
        let (listener, port) = loopbackSocket()
        (self.listener, self.port) = (listener, port)
        if var size = receiveBuffer {
            _ = unsafe setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var limit = timeval(tv_sec: 300, tv_usec: 0)
        _ = unsafe setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard listen(listener, 64) == 0 else {
            throw Problem(doing: "listen: \(errno)")
        }
    }

    deinit { close(listener) }

    /// Returns the next connection.
    func accept() throws -> Peer {
        let accepted = Glibc.accept(listener, nil, nil)
        guard accepted >= 0 else { throw Problem(doing: "accept: \(errno)") }
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        return Peer(accepted: accepted)
    }

    /// True if a connection waits.
    var hasCaller: Bool {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }
}

/// Upstream that answers each request by a closure of its head and body, on a thread per connection. An empty answer
/// ends the connection.
final class AnsweringUpstream: Sendable {
    let port: UInt16
    private let listener: Int32
    private let count = Mutex(0)

    /// Number of requests.
    var requests: Int { count.withLock { $0 } }

    convenience init(_ answer: @escaping @Sendable (_ head: String, _ body: String) -> String) throws {
        try self.init(perConnection: { answer })
    }

    /// Listens. `answers` is called once for each connection.
    init(perConnection answers: @escaping @Sendable () -> (_ head: String, _ body: String) -> String) throws {
        let (listener, port) = loopbackSocket()
        (self.listener, self.port) = (listener, port)
        guard listen(listener, 256) == 0 else {
            throw ScriptedUpstream.Problem(doing: "listen: \(errno)")
        }
        let serve = Serving(answers: answers, owner: self)
        inBackground {
            while case let accepted = Glibc.accept(listener, nil, nil), accepted >= 0 {
                _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
                inBackground { serve.connection(accepted) }
            }
            _ = Glibc.close(listener)
        }
    }

    /// Its threads end by themselves once their peers are gone.
    deinit { _ = shutdown(listener, Int32(SHUT_RDWR)) }

    private struct Serving: Sendable {
        let answers: @Sendable () -> (String, String) -> String
        weak let owner: AnsweringUpstream?

        func connection(_ number: Int32) {
            let peer = Peer(accepted: number)
            let answer = answers()
            while let request = try? peer.message() {
                owner?.count.withLock { $0 += 1 }
                let text = answer(request.head, request.body)
                // A test may wait for what the closure has recorded.
                Bell.shared.ring()
                guard !text.isEmpty, (try? peer.send(text)) != nil else { return }
            }
        }
    }
}
