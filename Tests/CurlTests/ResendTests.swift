// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Testing

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
