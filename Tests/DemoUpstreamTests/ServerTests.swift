// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import DemoUpstream
import Glibc
import Testing

@Suite("the demonstration's server")
struct ServerTests {
    @Test("serves one request after the other on a connection, bodies of both framings among them")
    func keepAlive() throws {
        try withUpstream { upstream in
            let answers = try exchange(
                """
                GET /open/a HTTP/1.1\r\nHost: x\r\n\r\n\
                POST /open/b HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello\
                POST /open/c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n\
                HEAD /open/d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n
                """, upstream.port)
            #expect(answers.count(of: "HTTP/1.1 200 OK\r\n") == 4)
            #expect(answers.count(of: "\"sha256\":\"\(sha256("hello"))\"") == 2)
            #expect(answers.hasSuffix("Connection: close\r\n\r\n"))
        }
    }

    @Test("sends events one by one, and then ends their body")
    func events() throws {
        try withUpstream { upstream in
            let answer = try exchange(
                "GET /open/stream?lines=2&pause=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", upstream.port)
            #expect(answer.hasSuffix("\r\n\r\ne\r\ndata: tick 1\n\n\r\ne\r\ndata: tick 2\n\n\r\n0\r\n\r\n"))
        }
    }

    @Test("what is no request is refused, and the connection ends")
    func refusal() throws {
        try withUpstream { upstream in
            let answer = try exchange(
                "GET /open/a HTTP/1.1\r\n\r\nGET /open/b HTTP/1.1\r\nHost: x\r\n\r\n", upstream.port)
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(!answer.contains("/open/b"))
        }
    }

    @Test("a port that is taken is an error that names it")
    func portIsTaken() throws {
        try withUpstream { upstream in
            let second = DemoUpstream(port: upstream.port)
            let error = #expect(throws: DemoServerError.self) { try second.start() }
            #expect(error?.code == EADDRINUSE)
            #expect(error?.description.contains("\(upstream.port)") == true)
        }
    }

    @Test("a stop ends connections, also one that is in the middle of an answer")
    func stop() throws {
        let upstream = DemoUpstream()
        try upstream.start()
        let stream = try connected(to: upstream.port)
        defer { close(stream) }
        try send("GET /open/stream?lines=1000000&pause=1 HTTP/1.1\r\nHost: x\r\n\r\n", to: stream)
        var byte: UInt8 = 0
        #expect(unsafe recv(stream, &byte, 1, 0) == 1)
        upstream.stop()
        #expect(!readAll(stream).hasSuffix("0\r\n\r\n"))
    }

    private func withUpstream(_ body: (DemoUpstream) throws -> Void) throws {
        let upstream = DemoUpstream()
        try upstream.start()
        defer { upstream.stop() }
        try body(upstream)
    }

    /// Sends bytes and returns all that comes until the server ends.
    private func exchange(_ text: String, _ port: UInt16) throws -> String {
        let descriptor = try connected(to: port)
        defer { close(descriptor) }
        try send(text, to: descriptor)
        return readAll(descriptor)
    }

    private func connected(to port: UInt16) throws -> Int32 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(result == 0)
        return descriptor
    }

    private func send(_ text: String, to descriptor: Int32) throws {
        let bytes = Array(text.utf8)
        let count = unsafe bytes.withUnsafeBytes {
            unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        try #require(count == bytes.count)
    }

    private func readAll(_ descriptor: Int32) -> String {
        var text: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += bytes[..<count]
        }
    }
}

extension String {
    /// How often another text stands in it.
    fileprivate func count(of text: String) -> Int { ranges(of: text).count }
}
