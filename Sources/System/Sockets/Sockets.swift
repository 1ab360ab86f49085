// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Basics
internal import CLinux
internal import Glibc

/// Creation and options of sockets.
package enum Sockets {
    /// Makes a blocking stream socket, closed on exec; the caller closes it.
    package static func makeStream(_ family: Int32) throws(SystemError) -> Int32 {
        try systemCall { socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0) }
    }

    /// Makes a non-blocking socket, closed on exec; the caller closes it.
    package static func makeNonblocking(_ family: Int32, isDatagram: Bool = false) throws(SystemError) -> Int32 {
        let type = isDatagram ? Int32(SOCK_DGRAM.rawValue) : Int32(SOCK_STREAM.rawValue)
        let descriptor = clinux_socket(family, type)
        guard descriptor >= 0 else { throw SystemError(code: -descriptor) }
        return descriptor
    }

    /// Sends small pieces at once (TCP_NODELAY, tcp(7)). A broken socket reports its error at the next use.
    package static func sendAtOnce(_ socket: Int32) { try? set(Int32(IPPROTO_TCP), TCP_NODELAY, 1, on: socket) }

    /// Allows a listening socket to bind an address that connections of a previous one still have (SO_REUSEADDR,
    /// socket(7)).
    package static func reuseAddress(_ socket: Int32) { try? set(SOL_SOCKET, SO_REUSEADDR, 1, on: socket) }

    /// Makes the kernel name the sender of each datagram (SO_PASSCRED, unix(7)).
    package static func passCredentials(_ socket: Int32) throws(SystemError) {
        try set(SOL_SOCKET, SO_PASSCRED, 1, on: socket)
    }

    /// Makes closing reset the connection instead of ending it (SO_LINGER of 0 seconds, socket(7)).
    package static func resetOnClose(_ socket: Int32) {
        try? set(SOL_SOCKET, SO_LINGER, linger(l_onoff: 1, l_linger: 0), on: socket)
    }

    /// Limits the time that calls on a blocking socket wait, to at least a millisecond.
    package static func setTimeouts(_ socket: Int32, receive: Duration? = nil, send: Duration? = nil) {
        for (option, limit) in [(SO_RCVTIMEO, receive), (SO_SNDTIMEO, send)] {
            guard let limit else { continue }
            // Zero would mean no limit.
            let time = max(limit, .milliseconds(1)).timespec
            try? set(
                SOL_SOCKET, option, timeval(tv_sec: time.tv_sec, tv_usec: suseconds_t(time.tv_nsec / 1000)),
                on: socket)
        }
    }

    /// Returns the failure of a connection that was begun on a non-blocking socket (SO_ERROR); nil if it succeeded.
    package static func pendingError(of socket: Int32) -> SystemError? {
        var failure: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard unsafe getsockopt(socket, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 else { return .last }
        return failure == 0 ? nil : SystemError(code: failure)
    }

    /// Returns the uid with which the peer of a Unix socket called `connect` (SO_PEERCRED, unix(7)); nil if the kernel
    /// does not report it.
    package static func peerUser(of socket: Int32) -> UInt32? {
        var uid: UInt32 = 0
        return unsafe clinux_peer_uid(socket, &uid) == 0 ? uid : nil
    }

    private static func set<Value: BitwiseCopyable>(
        _ level: Int32, _ option: Int32, _ value: Value, on socket: Int32
    ) throws(SystemError) {
        var value = value
        try systemCall { unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Value>.size)) }
    }

    private static func set(_ level: Int32, _ option: Int32, _ value: Int32, on socket: Int32) throws(SystemError) {
        var value = value
        try systemCall { unsafe setsockopt(socket, level, option, &value, socklen_t(MemoryLayout<Int32>.size)) }
    }
}
