// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

@Suite("Sending again")
struct ResendTests {
    @Test("a request whose connection died unanswered is sent again by libcurl, and the attempts are counted")
    func counted() async throws {
        let server = try Server()
        let client = try Client()
        #expect(try await client.fetch(server.url("/once")).attempts == [1])
        let second = try await client.fetch(server.url("/once"))
        #expect(second.attempts == [1, 2])
        #expect(second.status == 200)
        await client.close()
    }

    @Test("the owner can refuse the second attempt, so that nothing is done twice")
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

    @Test("a body that cannot be had again fails the transfer instead of going out wrong")
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
