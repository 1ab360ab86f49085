// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import Testing

@Suite("Transfers")
struct TransferTests {
    @Test("a GET returns status, head and body")
    func get() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/bytes/100000"))
        #expect(outcome.error == nil)
        #expect(outcome.status == 200)
        #expect(outcome.head == "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        #expect(outcome.body == [UInt8](repeating: 120, count: 100_000))
        #expect(outcome.attempts == [1])
        #expect(outcome.connections == 1)
        await client.close()
    }

    @Test("twenty transfers run concurrently on one thread")
    func parallel() async throws {
        let server = try Server()
        let client = try Client()
        let sizes = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...20 {
                group.addTask { try await client.fetch(server.url("/bytes/\(number * 1000)")).body.count }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(sizes.sorted() == (1...20).map { $0 * 1000 })
        await client.close()
    }

    @Test("a parsed URL serves several transfers and can be replaced")
    func address() async throws {
        let first = try Server()
        let second = try Server()
        let client = try Client()
        let sizes = try await client.fetch(addresses: [
            first.url("/bytes/10"), first.url("/bytes/20"), second.url("/bytes/30"), first.url("/bytes/40"),
        ])
        #expect(sizes == [10, 20, 30, 40])
        await client.close()
    }

    @Test("an invalid URL is refused", arguments: ["", "http://", "http://a b/", "http://[::1"])
    func noAddress(text: String) throws {
        let handle = try EasyHandle()
        #expect(throws: CurlError.urlMalformed) { try handle.setAddress(text) }
    }
}
