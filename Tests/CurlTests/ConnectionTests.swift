// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import TestSupport
import Testing

/// Sends a request on a connection that libcurl has made, and keeps all input until the end.
private final class Speaker: ReadinessHandler {
    private let handle: EasyHandle
    private let request: [UInt8]
    private let done: (Result<String, any Error>) -> Void
    private var answer: [UInt8] = []
    private var isSent = false

    init(_ handle: EasyHandle, _ request: String, _ done: @escaping (Result<String, any Error>) -> Void) {
        self.handle = handle
        self.request = Array(request.utf8)
        self.done = done
    }

    func ready(_ fd: Int32, _ events: Readiness) {
        do {
            if !isSent { isSent = try unsafe request.withUnsafeBytes { try unsafe handle.send($0) } > 0 }
            var space = [UInt8](repeating: 0, count: 1000)
            while let count = try unsafe space.withUnsafeMutableBytes({ try unsafe handle.receive(into: $0) }) {
                guard count > 0 else { return done(.success(String(decoding: answer, as: UTF8.self))) }
                answer += space.prefix(count)
            }
        } catch {
            done(.failure(error))
        }
    }
}

extension Client {
    /// Connects, and returns the error if that fails.
    fileprivate func connect(_ handle: EasyHandle, _ url: String) async throws -> CurlError? {
        try await fetch(url, on: handle) { _, handle, _ in try handle.connectOnly() }.error
    }

    /// Sends `request` on the connection of `handle`, and returns all input until its end.
    fileprivate func speak(_ handle: EasyHandle, _ request: String) async throws -> String {
        let descriptor = try #require(handle.activeSocket)
        return try await withCheckedThrowingContinuation { done in
            let speaker = Speaker(handle, request) { result in
                self.thread.loop.suspend(descriptor)
                done.resume(with: result)
            }
            self.thread.loop.watch(descriptor, for: [.read, .write], handler: speaker)
        }
    }

    fileprivate func converse(_ url: String, _ request: String) async throws -> (answer: String, members: [Int]) {
        let handle = try EasyHandle()
        let driver = try driver()
        guard try await connect(handle, url) == nil else { return ("no connection", []) }
        let connected = driver.multi.count
        let answer = try await speak(handle, request)
        driver.multi.remove(handle)
        driver.carryOut()
        #expect(handle.activeSocket == nil)
        #expect(throws: CurlError.self) { try unsafe [UInt8(1)].withUnsafeBytes { try unsafe handle.send($0) } }
        return (answer, [connected, driver.multi.count])
    }

    fileprivate func fail(_ url: String) async throws -> (error: CurlError?, members: Int) {
        let handle = try EasyHandle()
        let error = try await connect(handle, url)
        #expect(handle.activeSocket == nil)
        return (error, try driver().multi.count)
    }
}

@Suite("Connections that libcurl only establishes")
struct ConnectionTests {
    @Test("a connect-only connection carries the owner's bytes until the handle is removed")
    func conversation() async throws {
        let server = try Server()
        let client = try Client()
        for _ in 0..<3 {
            let outcome = try await client.converse(server.url("/ignored"), "GET /truncated HTTP/1.1\r\n\r\n")
            #expect(outcome.answer == "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            #expect(outcome.members == [1, 0])
        }
        // The same multi handle also runs transfers.
        #expect(try await client.fetch(server.url("/bytes/65")).status == 200)
        await client.close()
    }

    @Test("a failed connect-only connection is reported like a failed transfer")
    func refused() async throws {
        let client = try Client()
        let (_, port) = loopbackSocket()
        let outcome = try await client.fail("http://127.0.0.1:\(port)/")
        #expect(outcome.error == .couldNotConnect)
        #expect(outcome.members == 0)
        await client.close()
    }
}
