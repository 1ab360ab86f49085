// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Synchronization
import TestSupport

/// An upstream whose every byte the test says: it accepts a connection when the test asks for one.
final class ScriptedUpstream {
    let port: UInt16
    private let listener: Int32

    struct Problem: Error {
        var doing: String
    }

    /// `receiveBuffer`: of the connections, so that little is on the way.
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

    /// The next connection.
    func accept() throws -> Peer {
        let accepted = Glibc.accept(listener, nil, nil)
        guard accepted >= 0 else { throw Problem(doing: "accept: \(errno)") }
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        return Peer(accepted: accepted)
    }

    /// Whether somebody has connected.
    var hasCaller: Bool {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }
}

/// An upstream that answers by itself, on a thread per connection, what `answer` says to a request's head and body; an empty text
/// ends the connection.
final class AnsweringUpstream: Sendable {
    let port: UInt16
    private let listener: Int32
    private let count = Mutex(0)

    /// How many requests came.
    var requests: Int { count.withLock { $0 } }

    convenience init(_ answer: @escaping @Sendable (_ head: String, _ body: String) -> String) throws {
        try self.init(perConnection: { answer })
    }

    /// `answers` is asked once for each connection.
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
                // What was noted meanwhile may be waited for.
                Bell.shared.ring()
                guard !text.isEmpty, (try? peer.send(text)) != nil else { return }
            }
        }
    }
}
