// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

/// One end of a TCP connection: its address as IPv6 writes it (an IPv4 one as ::ffff:a.b.c.d) in two halves, and its
/// port. The same end is equal, whichever family a socket gave it in.
struct SocketEnd: Equatable {
    var high: UInt64
    var low: UInt64
    var port: UInt32

    /// True if the address is a loopback one: of 127.0.0.0/8, or ::1.
    var isLoopback: Bool { high == 0 && (low >> 24 == 0xFFFF_7F || low == 1) }
}

/// Both ends, as one of the two sockets sees them.
struct SocketEnds: Equatable {
    var local: SocketEnd
    var remote: SocketEnd

    /// True if both are on one machine, as far as their addresses tell.
    var areOnOneMachine: Bool {
        local.isLoopback || remote.isLoopback || (local.high, local.low) == (remote.high, remote.low)
    }

    /// As the other socket sees them.
    var reversed: SocketEnds { SocketEnds(local: remote, remote: local) }
}

/// States of TCP (RFC 9293 §3.3.2) by the kernel's numbers, those that matter here.
enum SocketState: Int32 {
    case established = 1
    case finWait1 = 4
    case finWait2 = 5
    case timeWait = 6
    case close = 7
    case closeWait = 8
    case listen = 10
}

/// What the kernel said of a socket (inet_diag_msg, sock_diag(7)).
struct SocketAnswer {
    var state: UInt32
    var uid: UInt32
    /// The number of the socket's file; 0 when no process holds it any more.
    var inode: UInt32
    var ends: SocketEnds

    /// The uid of whoever holds the socket with these ends; `nil` where the answer is about another socket, or nobody
    /// holds it.
    ///
    /// The kernel has no uid for a connection without a socket, as one in TIME_WAIT, and then says 0, which is root's. It
    /// also answers with a *listening* socket at the address that was asked for, where there is no connection.
    func holder(of ends: SocketEnds) -> UInt32? {
        guard isHeld(between: ends), uid != .max, let state = SocketState(rawValue: Int32(clamping: state)),
            [.established, .finWait1, .finWait2].contains(state)
        else { return nil }
        return uid
    }

    /// Returns whether the answer is about a socket with these ends that was closed: the kernel finishes the connection, for nobody.
    func isOrphan(between ends: SocketEnds) -> Bool {
        guard inode == 0, self.ends == ends, let state = SocketState(rawValue: Int32(clamping: state)) else {
            return false
        }
        return [.finWait1, .finWait2, .timeWait].contains(state)
    }

    /// Returns whether the answer is about a socket with these ends that some process holds.
    func isHeld(between ends: SocketEnds) -> Bool { inode != 0 && self.ends == ends }
}
