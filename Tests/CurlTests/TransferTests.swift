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

@Suite("Flow control of bodies")
struct FlowTests {
    @Test("a paused download completes after it is unpaused")
    func download() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/bytes/300000")) {
            [thread = client.thread] recorder, handle, driver in
            var pauses = 0
            recorder.onBody = { [unowned handle] _ in
                guard pauses < 3 else { return .consumed }
                pauses += 1
                _ = Alarm(thread.loop, after: .zero) {
                    #expect(handle.unpause() == nil)
                    driver.carryOut()
                }
                return .pause
            }
        }
        #expect(outcome.error == nil)
        #expect(outcome.body.count == 300_000)
        await client.close()
    }

    @Test("an upload streams from the delegate, and waits while the delegate has no bytes")
    func upload() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/count")) {
            [thread = client.thread] recorder, handle, driver in
            try handle.set(.upload, true)
            try handle.set(.bodySize, 200_000)
            let list = HeaderList()
            list.suppress("Expect")
            try handle.set(.httpHeader, list)
            var left = 200_000
            var isReady = false
            recorder.onNeed = { [unowned handle] room in
                guard isReady else {
                    isReady = true
                    _ = Alarm(thread.loop, after: .zero) {
                        #expect(handle.unpause() == nil)
                        driver.carryOut()
                    }
                    return .pause
                }
                isReady = false
                let count = min(room, left)
                left -= count
                return count == 0 ? .end : .bytes(count)
            }
        }
        #expect(outcome.error == nil)
        #expect(outcome.head.contains("X-Count: 200000\r\n"))
        await client.close()
    }

    @Test("a delegate that reports more bytes than fit into the buffer fails the transfer")
    func overflow() async throws {
        let server = try Server()
        let client = try Client()
        let outcome = try await client.fetch(server.url("/count")) { recorder, handle, _ in
            try handle.set(.upload, true)
            try handle.set(.bodySize, 10)
            recorder.onNeed = { room in .bytes(room + 1) }
        }
        #expect(outcome.error == .abortedByCallback)
        await client.close()
    }
}

@Suite("Requests that libcurl sends again")
struct ResendTests {
    @Test("libcurl sends a request again whose connection died unanswered, and the attempts are counted")
    func counted() async throws {
        let server = try Server()
        let client = try Client()
        #expect(try await client.fetch(server.url("/once")).attempts == [1])
        let second = try await client.fetch(server.url("/once"))
        #expect(second.attempts == [1, 2])
        #expect(second.status == 200)
        await client.close()
    }

    @Test("a delegate can refuse the second attempt to send a request")
    func refused() async throws {
        let server = try Server()
        let client = try Client()
        _ = try await client.fetch(server.url("/once"))
        let second = try await client.fetch(server.url("/once")) { recorder, handle, _ in
            try handle.set(.post, true)
            try handle.set(.postSize, 3)
            recorder.onNeed = { _ in .bytes(3) }
            recorder.onRewind = { _ in true }
            recorder.onSend = { attempt in attempt == 1 }
        }
        #expect(second.attempts == [1, 2])
        #expect(second.error == .abortedByCallback)
        #expect(second.status == 0)
        await client.close()
    }

    @Test("a body that cannot be rewound fails the transfer")
    func noRewind() async throws {
        let server = try Server()
        let client = try Client()
        _ = try await client.fetch(server.url("/once"))
        let second = try await client.fetch(server.url("/once")) { recorder, handle, _ in
            try handle.set(.post, true)
            try handle.set(.postSize, 3)
            recorder.onNeed = { _ in .bytes(3) }
        }
        #expect(second.error == .sendFailRewind)
        await client.close()
    }
}
