// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("the server")
struct ServerTests {
    private func echoServer(idle: Duration = .seconds(75)) throws -> LoopbackServer {
        let server = LoopbackServer(idle: idle) { request in
            .text(200, "\(request.method) \(request.target) \(String(decoding: request.body, as: UTF8.self))")
        }
        try server.start()
        return server
    }

    @Test("a connection serves one request after another")
    func keepAlive() throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        for number in 1...3 {
            try client.send("POST /a?n=\(number) HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc")
            #expect(try client.response().body == "POST /a?n=\(number) abc")
        }
        #expect(server.recorder.record.connections == 1)
        #expect(server.recorder.record.violations == [])
    }

    @Test("chunks are put together, their extensions and trailers left out")
    func chunkedRequest() throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send("PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\nA\r\n0123")
        try client.send("456789\r\n0\r\nX-Trailer: 1\r\n\r\n")
        #expect(try client.response().body == "PUT / abc0123456789")
    }

    @Test("whoever expects 100 gets it before the body is sent")
    func expectContinue() throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send("PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        #expect(try client.read(until: "\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n")
        try client.send("ok")
        #expect(try client.response().body == "PUT / ok")
    }

    @Test(
        "what is no request is refused and noted",
        arguments: [
            "GET / HTTP/1.1\nHost: x\n\n", "GET  / HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://x/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
            "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\na",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        ])
    func malformed(request: String) throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send(request)
        client.finish()
        #expect(try client.readAll()?.hasPrefix("HTTP/1.1 400 ") == true)
        #expect(server.recorder.record.violations.count == 1)
    }

    @Test(
        "what a gateway must not send is noted, and served all the same",
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", "0 Host fields"),
            ("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", "2 Host fields"),
            ("GET / HTTP/1.1\r\nHost: x\r\nKeep-Alive: 5\r\n\r\n", "keep-alive"),
            ("GET / HTTP/1.1\r\nHost: x\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n", "2 Cookie fields"),
            ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nabcd", "3 bytes beyond the request"),
        ])
    func remarks(request: String, remark: String) throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send(request)
        #expect(try client.response().status == 200)
        let violations = server.recorder.record.violations
        #expect(violations.count { $0.contains(remark) } == 1)
    }

    @Test(
        "HTTP/1.0 and Connection: close end the connection",
        arguments: ["1.0\r\n", "1.1\r\nHost: x\r\nConnection: close\r\n"])
    func closing(version: String) throws {
        let server = try echoServer()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send("GET / HTTP/\(version)\r\n")
        #expect(try client.readAll()?.contains("Connection: close\r\n") == true)
    }

    @Test("a silent connection is closed")
    func idle() throws {
        let server = try echoServer(idle: .milliseconds(20))
        defer { server.stop() }
        #expect(try RawClient(port: server.port).readAll() == "")
    }

    @Test("stop ends connections, threads and descriptors, and start listens on the same port again")
    func stopAndStart() throws {
        let server = try echoServer()
        let port = server.port
        let client = try RawClient(port: port)
        try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT")
        #expect(try client.response().status == 200)
        server.stop()
        #expect(try client.readAll() == "")
        #expect(server.recorder.record.unfinishedRequests == 1)
        #expect(throws: RawClient.Problem.self) { try RawClient(port: port) }
        try server.start()
        #expect(server.port == port)
        let again = try RawClient(port: port)
        try again.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try again.response().status == 200)
        server.stop()
    }

    /// In a process of its own, whose descriptors are its own.
    @Test("hundreds of servers and connections leave no descriptor behind")
    func noLeak() async {
        await #expect(processExitsWith: .success) {
            var before = 0
            for number in 0..<200 {
                let server = LoopbackServer { _ in FakeResponse(200) }
                try server.start()
                let client = try RawClient(port: server.port)
                try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(try client.response().status == 200)
                server.stop()
                if number == 0 { before = openDescriptors() }
            }
            #expect(openDescriptors() <= before)
        }
    }

    @Test("a taken port is an error that says so")
    func takenPort() throws {
        let server = try echoServer()
        defer { server.stop() }
        let second = LoopbackServer(port: server.port) { _ in FakeResponse(200) }
        let error = #expect(throws: LoopbackServerError.self) { try second.start() }
        #expect(error?.description.contains("the port is taken") == true)
    }

    @Test("many connections are served at once, and all wait only for their own answer")
    func concurrency() async throws {
        let arrived = Mutex(0)
        let server = LoopbackServer { request in
            arrived.withLock { $0 += 1 }
            Bell.shared.ring()
            // No request is answered before several have arrived.
            _ = Bell.shared.wait { arrived.withLock { $0 } > 4 }
            return .text(200, request.path)
        }
        try server.start()
        defer { server.stop() }
        let port = server.port
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<4 {
                group.addTask {
                    let clients = try (0..<16).map { _ in try RawClient(port: port) }
                    for client in clients { try client.send("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n") }
                    return try clients.allSatisfy { try $0.response().body == "/\(number)" }
                }
            }
            for try await isRight in group { #expect(isRight) }
        }
        let record = server.recorder.record
        #expect(record.connections == 64)
        #expect(try #require(record.maxConcurrent["*"]) > 4)
    }
}

/// Returns the number of descriptors that this process holds.
func openDescriptors() -> Int {
    (0..<8192).count { fcntl(Int32($0), F_GETFD) != -1 }
}
