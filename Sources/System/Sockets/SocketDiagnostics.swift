// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import CLinux
internal import Glibc

/// Queries to the kernel about the TCP sockets of this machine (sock_diag(7)). For one thread.
///
/// The kernel answers within the call, by one lookup in its table of connections: about 5 µs, regardless of their
/// number.
package final class SocketDiagnostics {
    private var descriptor: Int32 = -1
    private var sequence: UInt32 = 0
    /// Limit of messages read for one answer. More than one only if an answer to an earlier query was left unread.
    private static let mostMessages = 8

    /// Opens its socket at the first question.
    package init() {}

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Returns the answer about the socket with these ends; nil if the kernel gives no answer.
    package func answer(about ends: SocketEnds) -> SocketAnswer? {
        if descriptor < 0 { descriptor = clinux_diag_socket() }
        guard descriptor >= 0 else { return nil }
        sequence &+= 1
        var local = ends.local.forKernel
        var remote = ends.remote.forKernel
        guard unsafe clinux_diag_ask(descriptor, sequence, &local, &remote) == 0 else { return nil }
        for _ in 0..<Self.mostMessages {
            var answer = clinux_diag_answer()
            let result = unsafe clinux_diag_take(descriptor, &answer)
            if result == 1, answer.sequence == sequence { return SocketAnswer(answer) }
            guard result >= 0 || result == -EINTR else { break }
        }
        // A failed exchange must not be read as the answer to the next query.
        close(descriptor)
        descriptor = -1
        return nil
    }

    /// Returns the ends of a connected TCP socket of this process; nil for other sockets and after a disconnect.
    package static func ends(of connection: Int32) -> SocketEnds? {
        var local = clinux_endpoint()
        var remote = clinux_endpoint()
        guard unsafe clinux_endpoints(connection, &local, &remote) == 0 else { return nil }
        return SocketEnds(local: SocketEnd(local), remote: SocketEnd(remote))
    }

    /// Returns the state of a TCP socket of this process; nil for other sockets and for states that are not in
    /// `SocketState`.
    package static func state(of connection: Int32) -> SocketState? {
        SocketState(rawValue: clinux_tcp_state(connection))
    }
}

extension SocketEnd {
    fileprivate init(_ end: clinux_endpoint) { self.init(high: end.high, low: end.low, port: end.port) }

    fileprivate var forKernel: clinux_endpoint { clinux_endpoint(high: high, low: low, port: port) }
}

extension SocketAnswer {
    fileprivate init?(_ answer: clinux_diag_answer) {
        guard answer.error == 0 else { return nil }
        self.init(
            state: answer.state, uid: answer.uid, inode: answer.inode,
            ends: SocketEnds(local: SocketEnd(answer.local), remote: SocketEnd(answer.remote)))
    }
}

/// One end of a TCP connection: address and port. The address is in two halves as IPv6 writes it (an IPv4 one as
/// ::ffff:a.b.c.d), so equal ends compare equal, whichever family a socket gave them in.
package struct SocketEnd: Equatable {
    /// First half of the address.
    package var high: UInt64
    /// Second half of the address.
    package var low: UInt64
    /// Port.
    package var port: UInt32

    /// True if the address is a loopback one: of 127.0.0.0/8, or ::1.
    package var isLoopback: Bool { high == 0 && (low >> 24 == 0xFFFF_7F || low == 1) }
}

/// Both ends, as one of the two sockets sees them.
package struct SocketEnds: Equatable {
    /// The socket's own end.
    package var local: SocketEnd
    /// The end of the socket at the other side.
    package var remote: SocketEnd

    /// True if both ends are on one machine, as far as their addresses show.
    package var areOnOneMachine: Bool {
        local.isLoopback || remote.isLoopback || (local.high, local.low) == (remote.high, remote.low)
    }

    /// As the other socket sees them.
    package var reversed: SocketEnds { SocketEnds(local: remote, remote: local) }
}

/// States of TCP (RFC 9293 §3.3.2) with the kernel's numbers; only those in use.
package enum SocketState: Int32 {
    case established = 1
    case finWait1 = 4
    case finWait2 = 5
    case timeWait = 6
    case close = 7
    case closeWait = 8
    case listen = 10
}

/// The kernel's answer about a socket (inet_diag_msg, sock_diag(7)).
package struct SocketAnswer {
    /// State of TCP, by the kernel's number.
    package var state: UInt32
    /// User of the socket.
    package var uid: UInt32
    /// Inode of the socket's file; 0 if no process holds the socket any more.
    package var inode: UInt32
    /// Both ends.
    package var ends: SocketEnds

    /// Returns the uid of the process that holds the socket with these ends. Nil if the answer is about another socket,
    /// or no process holds it.
    ///
    /// For a connection without a socket, such as one in TIME_WAIT, the kernel has no uid and reports 0, which is
    /// root's. If there is no connection, the kernel answers with a *listening* socket at the requested address.
    package func holder(of ends: SocketEnds) -> UInt32? {
        guard isHeld(between: ends), uid != .max, let state = SocketState(rawValue: Int32(clamping: state)),
            [.established, .finWait1, .finWait2].contains(state)
        else { return nil }
        return uid
    }

    /// Returns true if a socket with these ends was closed and the kernel is finishing the connection on its own.
    package func isOrphan(between ends: SocketEnds) -> Bool {
        guard inode == 0, self.ends == ends, let state = SocketState(rawValue: Int32(clamping: state)) else {
            return false
        }
        return [.finWait1, .finWait2, .timeWait].contains(state)
    }

    /// Returns true if some process holds a socket with these ends.
    package func isHeld(between ends: SocketEnds) -> Bool { inode != 0 && self.ends == ends }
}
