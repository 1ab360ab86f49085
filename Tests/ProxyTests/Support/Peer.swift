// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import TestSupport
import Testing

/// A blocking TCP socket that sends exact bytes and expects exact bytes: a caller of the proxy, or an upstream's end of
/// a connection. Every wait ends after five minutes at the latest.
final class Peer {
    struct Problem: Error {
        var doing: String
    }

    private let number: Int32
    private var isOpen = true
    private(set) var buffer: [UInt8] = []

    /// Takes over an accepted socket.
    init(accepted number: Int32) {
        self.number = number
        limitWaiting(number)
    }

    /// Connects to a port of 127.0.0.1. `receiveBuffer`: its size; with a small one few bytes are in transit.
    init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        limitWaiting(number)
        if var size = receiveBuffer {
            _ = unsafe setsockopt(number, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        let result = unsafe withLoopback(port: port) { unsafe connect(number, $0, $1) }
        guard result == 0 else { throw Problem(doing: "connect: \(errno)") }
        // The second part of a message does not wait for the acknowledgement of the first.
        var one: Int32 = 1
        _ = unsafe setsockopt(
            number, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to a Unix socket.
    init(path: String) throws {
        number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        limitWaiting(number)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: Array(path.utf8)) }
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Problem(doing: "connect: \(errno)") }
    }

    deinit { close() }

    // MARK: Sending

    func send(_ text: String) throws { try send(Array(text.utf8)) }

    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(number, $0.baseAddress.map { unsafe $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Problem(doing: "send, after \(sent) bytes: \(errno)") }
            sent += count
        }
    }

    /// Sends until the idle `proxy` takes nothing more, and returns the number of bytes taken.
    func sendUntilHeld(_ limit: Int, by proxy: TestProxy) -> Int {
        sendUntilHeld([UInt8](repeating: 0x62, count: 65_536), limit, by: proxy)
    }

    /// Sends these bytes once, until `proxy` takes nothing more, and returns the number of bytes taken.
    func sendUntilHeld(_ bytes: [UInt8], by proxy: TestProxy) -> Int { sendUntilHeld(bytes, bytes.count, by: proxy) }

    private func sendUntilHeld(_ piece: [UInt8], _ limit: Int, by proxy: TestProxy) -> Int {
        var (sent, isHeld) = (0, false)
        while sent < limit {
            let start = sent % piece.count
            let count = unsafe piece.withUnsafeBytes { bytes in
                let rest = unsafe bytes[start...]
                let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                return unsafe Glibc.send(
                    number, UnsafeRawBufferPointer(rebasing: rest).baseAddress, min(rest.count, limit - sent), flags)
            }
            if count > 0 {
                sent += count
                isHeld = false
            } else {
                // Bytes in the kernel can still be read by the proxy, and those in transit have not arrived yet.
                guard !isHeld else { break }
                isHeld = hasArrived
                proxy.settle()
            }
        }
        return sent
    }

    /// True if the other side's kernel has all bytes that ours has sent, as always for a socket that is not TCP.
    private var hasArrived: Bool {
        var info = tcp_info()
        var size = socklen_t(MemoryLayout<tcp_info>.size)
        let result = unsafe getsockopt(number, Int32(IPPROTO_TCP), TCP_INFO, &info, &size)
        return result != 0 || info.tcpi_unacked == 0
    }

    // MARK: Receiving

    /// Expects exactly these bytes next.
    func expect(_ text: String) throws {
        let wanted = Array(text.utf8)
        while buffer.count < wanted.count {
            guard receive() > 0 else { throw Problem(doing: "expect \(text), got \(rest)") }
            guard wanted.starts(with: buffer.prefix(wanted.count)) else { break }
        }
        guard buffer.starts(with: wanted) else { throw Problem(doing: "expect \(text), got \(rest)") }
        buffer.removeFirst(wanted.count)
    }

    /// Returns the text up to and including `end`.
    func read(until end: String) throws -> String {
        while true {
            if let range = buffer.firstRange(of: Array(end.utf8)) {
                let text = String(decoding: buffer[..<range.upperBound], as: UTF8.self)
                buffer.removeFirst(range.upperBound)
                return text
            }
            guard receive() > 0 else { throw Problem(doing: "find \(end) in \(rest)") }
        }
    }

    /// Returns exactly `count` bytes.
    func read(count: Int) throws -> [UInt8] {
        while buffer.count < count {
            guard receive() > 0 else { throw Problem(doing: "read \(count) bytes, got \(buffer.count)") }
        }
        defer { buffer.removeFirst(count) }
        return Array(buffer.prefix(count))
    }

    /// Discards the received bytes, and returns their number.
    func drain() -> Int {
        defer { buffer.removeAll() }
        return buffer.count
    }

    /// Returns the next head.
    func head() throws -> String { try read(until: "\r\n\r\n") }

    /// Returns the next head, and leaves it unread.
    func peekHead() -> String? {
        guard let head = try? head() else { return nil }
        buffer = Array(head.utf8) + buffer
        return head
    }

    /// Returns one message: its head, and its body by `Content-Length`, or in chunks as received. Answers an expectation
    /// of 100.
    func message() throws -> (head: String, body: String) {
        let head = try head()
        if head.contains("\r\nExpect: 100-continue\r\n") { try send("HTTP/1.1 100 Continue\r\n\r\n") }
        if head.contains("\r\nTransfer-Encoding: chunked\r\n") { return (head, try read(until: "0\r\n\r\n")) }
        let length = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length: ") }
        let count = length.flatMap { Int($0.dropFirst(16)) } ?? 0
        return (head, String(decoding: try read(count: count), as: UTF8.self))
    }

    /// Returns all input until the other side closes; `nil` if it ends with a reset.
    func readAll() throws -> String? {
        while true {
            let count = receive()
            if count == 0 { return rest }
            guard count > 0 else {
                guard errno == ECONNRESET else { throw Problem(doing: "wait for the end: \(errno), got \(rest)") }
                return nil
            }
        }
    }

    /// Waits until the other side has closed or reset the connection.
    func expectEnd() throws {
        while true {
            let count = receive()
            if count == 0 || (count < 0 && errno == ECONNRESET) { return }
            guard count > 0 else { throw Problem(doing: "wait for the end: \(errno)") }
            buffer.removeAll()
        }
    }

    /// True if bytes or the end have arrived.
    var hasNews: Bool {
        if !buffer.isEmpty { return true }
        var entry = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&entry, 1, 0) > 0
    }

    /// Reads one byte, and leaves the others in the kernel.
    func readByte() -> Bool {
        var byte: UInt8 = 0
        return unsafe recv(number, &byte, 1, 0) == 1
    }

    // MARK: Ending

    /// Closes the sending side only.
    func finish() { _ = shutdown(number, Int32(SHUT_WR)) }

    /// Closes with a reset.
    func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        _ = unsafe setsockopt(number, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        _ = Glibc.close(number)
        Bell.shared.ring()
    }

    private var rest: String { String(decoding: buffer, as: UTF8.self) }

    private func receive() -> Int {
        unsafe withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { space in
            let count = unsafe recv(number, space.baseAddress, space.count, 0)
            if count > 0 { unsafe buffer.append(contentsOf: space.prefix(count)) }
            return count
        }
    }
}

/// Closes `peer`, on another thread, as soon as a head has arrived.
func startThread(closing peer: Peer) {
    struct Carrier: @unchecked Sendable {
        // Transferred: the caller does not use it any more.
        let peer: Peer
    }
    let carrier = Carrier(peer: peer)
    inBackground {
        _ = try? carrier.peer.head()
        carrier.peer.close()
    }
}

/// Limits all waits on `number` to five minutes.
private func limitWaiting(_ number: Int32) {
    var limit = timeval(tv_sec: 300, tv_usec: 0)
    _ = unsafe setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    _ = unsafe setsockopt(number, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
}

/// A long sequence of bytes whose pieces all differ, so that lost, repeated or moved bytes are noticed.
struct Pattern {
    static let piece = 65_536
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Returns the next piece.
    mutating func next() -> [UInt8] {
        unsafe [UInt8](unsafeUninitializedCapacity: Self.piece) { buffer, count in
            unsafe UnsafeMutableRawBufferPointer(buffer).withMemoryRebound(to: UInt64.self) { words in
                for index in 0..<words.count {
                    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    unsafe words[index] = state
                }
            }
            count = Self.piece
        }
    }
}

extension Peer {
    /// Sends a pattern of `size` bytes, a multiple of its piece, on another thread.
    final class Stream: Sendable {
        private struct Carrier: @unchecked Sendable {
            // The thread only sends and its starter only receives, so they share no mutable state.
            let peer: Peer
        }
        private let isDone = Signal()

        init(_ peer: Peer, seed: UInt64, size: Int) {
            let carrier = Carrier(peer: peer)
            inBackground { [self] in
                var pattern = Pattern(seed: seed)
                for _ in 0..<size / Pattern.piece {
                    guard (try? carrier.peer.send(pattern.next())) != nil else { break }
                }
                isDone.set()
            }
        }

        /// True if all is sent, or sending has failed.
        var isOver: Bool { isDone.isSet }

        /// Waits until all is sent or sending has failed.
        func join() { isDone.wait() }
    }

    /// Returns true if exactly that pattern comes next.
    func receives(seed: UInt64, size: Int) throws -> Bool {
        var pattern = Pattern(seed: seed)
        for _ in 0..<size / Pattern.piece where try read(count: Pattern.piece) != pattern.next() { return false }
        return true
    }
}
