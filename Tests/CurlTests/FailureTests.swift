// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Glibc
import TestSupport
import Testing

@Suite("Failed transfers of libcurl")
struct FailureTests {
    @Test("a refused connection is reported as couldNotConnect")
    func refused() async throws {
        let client = try Client()
        let outcome = try await client.fetch("http://127.0.0.1:\(Ports.next())/")
        #expect(outcome.error == .couldNotConnect)
        #expect(outcome.status == 0)
        #expect(outcome.text.contains("Failed to connect"))
        await client.close()
    }

    @Test("an unknown host name fails the transfer, and the loop continues")
    func unresolvable() async throws {
        let server = try Server()
        let client = try Client()
        async let lost = client.fetch("http://nosuch.invalid/")
        async let good = client.fetch(server.url("/bytes/65"))
        #expect(try await good.status == 200)
        #expect(try await lost.error == .couldNotResolveHost)
        await client.close()
    }

    @Test("a response body that ends early is an error")
    func truncated() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/truncated"))
        #expect(outcome.error == .partialFile)
        #expect(outcome.body == Array("short".utf8))
        await client.close()
    }

    @Test("a delegate that refuses the head or the body ends the transfer, and the next transfer works")
    func aborted() async throws {
        let server = try Server()
        let client = try Client()
        let head = try await client.fetch(server.url("/bytes/65")) { recorder, _, _ in
            recorder.onHeader = { _ in false }
        }
        #expect(head.error == .writeError)
        let body = try await client.fetch(server.url("/bytes/65")) { recorder, _, _ in
            recorder.onBody = { _ in .abort }
        }
        #expect(body.error == .writeError)
        #expect(try await client.fetch(server.url("/bytes/65")).error == nil)
        await client.close()
    }

    @Test("after an error of libcurl's own all transfers end at once, and no other begins on that multi handle")
    func broken() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/silent")) { _, _, driver in
            driver.afterStart = { [unowned driver] in driver.multi.recordFault(.outOfMemory) }
        }
        #expect(outcome.error == .outOfMemory)
        #expect(try await client.with { driver, _ in driver.multi.count } == 0)
        await #expect(throws: CurlError.outOfMemory) { try await client.fetch(server.url("/bytes/65")) }
        await client.close()
    }

    @Test("a transfer whose descriptor the kernel refuses to watch ends at once")
    func unwatched() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/bytes/50000000")) { recorder, handle, driver in
            recorder.onHeader = { _ in
                driver.multi.socketUnwatched(handle.socket)
                return true
            }
        }
        #expect(outcome.error == .outOfMemory)
        await client.close()
    }

    @Test("a transfer to a silent server ends with the timeout")
    func timeout() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/silent")) { _, handle, _ in
            try handle.set(.timeout, .milliseconds(30))
        }
        #expect(outcome.error == .operationTimedOut)
        await client.close()
    }

    @Test("URL schemes other than http and https are refused", arguments: ["file:///etc/passwd", "ftp://127.0.0.1/"])
    func schemes(url: String) async throws {
        let client = try Client()
        #expect(try await client.fetch(url).error == .unsupportedProtocol)
        await client.close()
    }

    @Test("a proxy of the environment is not used")
    func environment() async throws {
        await #expect(processExitsWith: .success) {
            unsafe setenv("http_proxy", "http://127.0.0.1:\(Ports.next())", 1)
            let server = try Server()
            #expect(try await Client().fetch(server.url("/bytes/65")).status == 200)
        }
    }
}
