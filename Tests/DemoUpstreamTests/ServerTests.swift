// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import DemoUpstream
import Glibc
import TestSupport
import Testing

@Suite("the demonstration's server")
struct ServerTests {
    @Test("the demonstration's server serves several requests on a connection, with bodies of both framings")
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

    @Test("the demonstration's server sends events one by one, and then ends their body")
    func events() throws {
        try withUpstream { upstream in
            let answer = try exchange(
                "GET /open/stream?lines=2&pause=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", upstream.port)
            #expect(answer.hasSuffix("\r\n\r\ne\r\ndata: tick 1\n\n\r\ne\r\ndata: tick 2\n\n\r\n0\r\n\r\n"))
        }
    }

    @Test("the demonstration's server refuses a malformed request and closes the connection")
    func refusal() throws {
        try withUpstream { upstream in
            let answer = try exchange(
                "GET /open/a HTTP/1.1\r\n\r\nGET /open/b HTTP/1.1\r\nHost: x\r\n\r\n", upstream.port)
            #expect(answer.hasPrefix("HTTP/1.1 400 Bad Request\r\n"))
            #expect(!answer.contains("/open/b"))
        }
    }

    @Test("a port in use is an error that names the port")
    func portIsTaken() throws {
        try withUpstream { upstream in
            let second = DemoUpstream(port: upstream.port)
            let error = #expect(throws: DemoServerError.self) { try second.start() }
            #expect(error?.code == EADDRINUSE)
            #expect(error?.description.contains("\(upstream.port)") == true)
        }
    }

    @Test("stopping the demonstration's server ends connections, even during a response")
    func stop() throws {
        let upstream = DemoUpstream()
        try upstream.start()
        let client = try RawClient(port: upstream.port)
        try client.send("GET /open/stream?lines=1000000&pause=1 HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try client.read(until: "tick 1\n")
        upstream.stop()
        #expect(try client.readAll()?.hasSuffix("0\r\n\r\n") != true)
    }

    private func withUpstream(_ body: (DemoUpstream) throws -> Void) throws {
        let upstream = DemoUpstream()
        try upstream.start()
        defer { upstream.stop() }
        try body(upstream)
    }

    /// Sends bytes and returns all input until the server closes.
    private func exchange(_ text: String, _ port: UInt16) throws -> String {
        let client = try RawClient(port: port)
        try client.send(text)
        return try client.readAll() ?? ""
    }
}

extension String {
    /// Returns the number of occurrences of `text`.
    fileprivate func count(of text: String) -> Int { ranges(of: text).count }
}
