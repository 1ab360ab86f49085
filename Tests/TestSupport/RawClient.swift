// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc

/// A socket to a port of 127.0.0.1 that sends exact bytes and returns those that come.
package final class RawClient {
    private let number: Int32
    private var buffer: [UInt8] = []

    /// The step that failed.
    package struct Problem: Error {
        /// In words.
        package let doing: String
    }

    /// Connects.
    package init(port: UInt16) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 300, tv_usec: 0)
        _ = unsafe setsockopt(number, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = unsafe withLoopback(port: port) { unsafe connect(number, $0, $1) }
        guard result == 0 else { throw Problem(doing: "connect") }
    }

    deinit { close(number) }

    /// Sends all of it.
    package func send(_ text: String) throws {
        try send(Array(text.utf8))
    }

    /// Sends all of them.
    package func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Problem(doing: "send") }
            rest = rest.dropFirst(count)
        }
    }

    /// Ends our side.
    package func finish() {
        shutdown(number, Int32(SHUT_WR))
    }

    /// Returns all bytes until the peer ends; `nil` if it ends with a reset.
    package func readAll() throws -> String? {
        while true {
            let count = receive()
            guard count >= 0 else {
                guard errno == ECONNRESET else { throw Problem(doing: "read: \(errno)") }
                return nil
            }
            guard count > 0 else { return String(decoding: buffer, as: UTF8.self) }
        }
    }

    /// Returns the text up to and including `end`.
    package func read(until end: String) throws -> String {
        while true {
            let text = String(decoding: buffer, as: UTF8.self)
            if let range = text.utf8.firstRange(of: end.utf8) {
                let head = String(text[..<range.upperBound])
                buffer.removeFirst(head.utf8.count)
                return head
            }
            guard receive() > 0 else { throw Problem(doing: "find \(end) in \(text)") }
        }
    }

    /// Status and body of one response with `Content-Length`.
    package func response() throws -> (status: Int, head: String, body: String) {
        let head = try read(until: "\r\n\r\n")
        let length = head.split(separator: "\r\n").first { $0.hasPrefix("Content-Length: ") }
        let count = length.flatMap { Int($0.dropFirst(16)) } ?? 0
        while buffer.count < count {
            guard receive() > 0 else { throw Problem(doing: "read a body of \(count)") }
        }
        let body = String(decoding: buffer.prefix(count), as: UTF8.self)
        buffer.removeFirst(count)
        return (Int(head.dropFirst(9).prefix(3)) ?? 0, head, body)
    }

    private func receive() -> Int {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe recv(number, &bytes, bytes.count, 0)
        if count > 0 { buffer += bytes.prefix(count) }
        return count
    }
}
