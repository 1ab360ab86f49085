// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import TestSupport

/// A plain socket, for requests that curl cannot send. Blocking: to be used within `offPool`.
final class RawConnection: Sendable {
    /// The way in which a connection ended.
    enum End: Sendable, Equatable {
        /// In order.
        case closed
        /// By a reset.
        case reset
        /// Not within the time.
        case open
    }

    private let descriptor: Int32

    /// Connects to a port of 127.0.0.1; no read or write takes longer than `seconds`.
    init(port: UInt16, seconds: Int = 200) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let descriptor = descriptor
        setTimes(seconds)
        guard unsafe withLoopback(port: port, { unsafe connect(descriptor, $0, $1) }) == 0 else {
            throw ChildError(description: "no connection to port \(port): error \(errno)")
        }
    }

    deinit { close(descriptor) }

    private func setTimes(_ seconds: Int) {
        var time = timeval(tv_sec: seconds, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, size)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, size)
    }

    /// Sends all of it; `false` if the peer does not take it.
    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends all of it; `false` if the peer does not take it.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes {
                unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Ends our side.
    func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Returns the bytes until the connection ends, and how it ends.
    func rest() -> (bytes: [UInt8], end: End) {
        var bytes: [UInt8] = []
        while true {
            switch receive() {
            case .success(let more) where more.isEmpty: return (bytes, .closed)
            case .success(let more): bytes += more
            case .failure(let error): return (bytes, error.code == ECONNRESET ? .reset : .open)
            }
        }
    }

    /// Returns the bytes until they contain that text, or until the end.
    func receive(until text: String) -> String {
        var bytes: [UInt8] = []
        while !String(decoding: bytes, as: UTF8.self).contains(text) {
            guard case .success(let more) = receive(), !more.isEmpty else { break }
            bytes += more
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Reads one response with a `Content-Length`, or without a body to `HEAD`; `nil` if it does not come whole.
    func response(toHead isHead: Bool = false) -> RawResponse? {
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual(Array("\r\n\r\n".utf8)) {
            // Byte by byte, so that nothing of the next response is taken.
            guard case .success(let byte) = receive(atMost: 1), !byte.isEmpty, head.count < 100_000 else { return nil }
            head += byte
        }
        var response = RawResponse(head: String(decoding: head, as: UTF8.self))
        guard !isHead, response.status != 204, response.status != 304, response.status != 100 else { return response }
        let length = Int(response.field("content-length") ?? "") ?? 0
        while response.body.count < length {
            guard case .success(let more) = receive(atMost: length - response.body.count), !more.isEmpty else {
                return nil
            }
            response.body += more
        }
        return response
    }

    private func receive(atMost limit: Int = 65_536) -> Result<[UInt8], SystemError> {
        var buffer = [UInt8](repeating: 0, count: limit)
        while true {
            let count = unsafe recv(descriptor, &buffer, buffer.count, 0)
            if count >= 0 { return .success(Array(buffer.prefix(count))) }
            if errno != EINTR { return .failure(SystemError(code: errno)) }
        }
    }

    private struct SystemError: Error {
        var code: Int32
    }
}

/// A response as it came.
struct RawResponse: Sendable {
    /// Status line and fields.
    var head: String
    /// The body.
    var body: [UInt8] = []

    /// The status code.
    var status: Int { head.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0 }
    /// The body as text.
    var text: String { String(decoding: body, as: UTF8.self) }
    /// The `code` of a problem document.
    var code: String? { JSON(parsing: body)?["code"]?.string }

    /// Returns the value of a field.
    func field(_ name: String) -> String? {
        for line in head.split(separator: "\r\n").dropFirst() where line.lowercased().hasPrefix(name + ":") {
            return String(line.dropFirst(name.count + 1).drop { $0 == " " })
        }
        return nil
    }
}

/// A port that is taken, at which no connection is answered.
final class RawListener: Sendable {
    /// The port.
    let port = Ports.next()
    private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)

    init() throws {
        let descriptor = descriptor
        let isTaken = unsafe withLoopback(port: port) { address, length in
            unsafe bind(descriptor, address, length) == 0 && listen(descriptor, 1) == 0
        }
        guard isTaken else { throw ChildError(description: "port \(port) cannot be taken: error \(errno)") }
    }

    deinit { close(descriptor) }
}
