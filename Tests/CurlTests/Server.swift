// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import EventLoop
import Glibc
import TestSupport

/// A small HTTP/1.1 server on a loopback port and a thread of its own. What it does is in the path:
///
/// - `/bytes/N`: N bytes with `Content-Length`. `/count`: the number of bytes of the request's body.
/// - `/truncated`: closes before the body is complete. `/silent`: never answers. `/echo-head`: the request's head.
/// - `/once`: answers the first request of a connection and closes at the next, without an answer.
final class Server: Sendable {
    let port: UInt16
    private let thread: EventLoopThread

    init() throws {
        let (listener, port) = loopbackSocket()
        precondition(listen(listener, 256) == 0)
        _ = fcntl(listener, F_SETFL, O_NONBLOCK)
        self.port = port
        thread = try EventLoopThread(name: "server") { loop in
            loop.watch(listener, for: .read, handler: Listener(listener, loop))
        }
    }

    /// The URL of `path`.
    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    deinit {
        thread.loop.stop()
        thread.join()
    }
}

private final class Listener: ReadinessHandler {
    private let fd: Int32
    private let loop: EventLoop

    init(_ fd: Int32, _ loop: EventLoop) {
        self.fd = fd
        self.loop = loop
    }

    deinit { close(fd) }

    func ready(_ fd: Int32, _ events: Readiness) {
        while case let accepted = accept(fd, nil, nil), accepted >= 0 {
            // A program that another test starts meanwhile would keep the connection open.
            _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
            _ = fcntl(accepted, F_SETFL, O_NONBLOCK)
            loop.watch(accepted, for: .read, handler: Connection(accepted, loop))
        }
    }
}

@safe
private final class Connection: ReadinessHandler {
    private let fd: Int32
    private let loop: EventLoop
    private let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: 1 << 20)
    private var filled = 0
    private var requests = 0
    private var pending: [UInt8] = []

    init(_ fd: Int32, _ loop: EventLoop) {
        self.fd = fd
        self.loop = loop
    }

    deinit {
        close(fd)
        unsafe buffer.deallocate()
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        if !pending.isEmpty { return flush() }
        let count = unsafe read(fd, buffer + filled, (1 << 20) - 1 - filled)
        guard count > 0 else { return count < 0 && errno == EAGAIN ? () : loop.forget(fd) }
        filled += count
        unsafe buffer[filled] = 0
        while answerOne() {}
    }

    /// Answers the request at the start of the buffer, if it is complete.
    private func answerOne() -> Bool {
        guard let end = unsafe strstr(buffer, "\r\n\r\n") else { return false }
        let headLength = unsafe end - buffer + 4
        var bodyLength = 0
        if let field = unsafe strstr(buffer, "Content-Length: "), unsafe field < end {
            bodyLength = unsafe atol(field + 16)
        }
        guard filled >= headLength + bodyLength else { return false }
        requests += 1
        let isOpen = answer(headLength, bodyLength)
        filled -= headLength + bodyLength
        unsafe memmove(buffer, buffer + headLength + bodyLength, filled)
        unsafe buffer[filled] = 0
        if !isOpen { loop.forget(fd) }
        return isOpen && filled > 0
    }

    private func answer(_ headLength: Int, _ bodyLength: Int) -> Bool {
        guard let path = unsafe strchr(buffer, 32).map({ unsafe $0 + 1 }) else { return false }
        func has(_ prefix: StaticString) -> Bool {
            unsafe strncmp(
                path, UnsafeRawPointer(prefix.utf8Start).assumingMemoryBound(to: CChar.self),
                prefix.utf8CodeUnitCount) == 0
        }
        if has("/bytes/65 ") { return put(small) }
        if has("/bytes/") {
            let body = [UInt8](repeating: 120, count: unsafe atol(path + 7))
            return put(head(body.count) + body)
        }
        if has("/count") { return put(head(0, "X-Count: \(bodyLength)\r\n")) }
        if has("/echo-head") {
            let text = unsafe UnsafeRawBufferPointer(start: buffer, count: headLength)
            return unsafe put(head(headLength) + Array(text))
        }
        if has("/once") { return requests == 1 && put(small) }
        if has("/silent") { return true }
        if has("/truncated") { _ = put(head(100) + Array("short".utf8)) }
        return false
    }

    private func put(_ bytes: [UInt8]) -> Bool {
        pending.append(contentsOf: bytes)
        flush()
        return true
    }

    private func flush() {
        let count = unsafe send(fd, pending, pending.count, Int32(MSG_NOSIGNAL))
        if count == pending.count {
            pending.removeAll(keepingCapacity: true)
            loop.watch(fd, for: .read, handler: self)
        } else if count >= 0 || errno == EAGAIN {
            pending.removeFirst(max(count, 0))
            loop.watch(fd, for: .write, handler: self)
        } else {
            loop.forget(fd)
        }
    }
}

private let small = head(65) + [UInt8](repeating: 120, count: 65)

private func head(_ length: Int, _ more: String = "") -> [UInt8] {
    Array("HTTP/1.1 200 OK\r\n\(more)Content-Length: \(length)\r\n\r\n".utf8)
}
