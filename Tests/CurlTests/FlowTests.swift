// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import EventLoop
import Testing

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
