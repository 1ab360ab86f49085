// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import FakeServers
import Testing

@Suite("A client's requests end", .timeLimit(.minutes(10)))
struct EndingTests {
    @Test("a request ends with its deadline")
    func deadline() async throws {
        try await withDemo { demo in
            demo.upstream.faults.add(Fault(.hang, at: nil))
            let error = try await clientError {
                try await demo.client.send(to: demo.url("/open/echo"), timeout: .milliseconds(100))
            }
            #expect(error.kind == .timedOut)
        }
    }

    @Test("a request ends with the cancellation of its task, before and after the head")
    func cancellation() async throws {
        try await withDemo { demo in
            let response = try await demo.client.send(to: demo.url("/open/bytes?count=1000000000"))
            let reading = Task { try await response.collect(upTo: .max) }
            reading.cancel()
            let broken = try await clientError { try await reading.value }
            #expect(broken.kind == .cancelled)

            demo.upstream.faults.add(Fault(.hang, at: nil))
            let sending = Task { try await demo.client.send(to: demo.url("/open/hang")) }
            #expect(await demo.upstream.recorder.waitUntil { $0.count("GET", "/open/hang") == 1 })
            sending.cancel()
            let error = try await clientError { try await sending.value }
            #expect(error.kind == .cancelled)
        }
    }

    @Test("a request of a cancelled task ends at once")
    func cancelledBefore() async throws {
        try await withDemo { demo in
            let sending = Task {
                while !Task.isCancelled { await Task.yield() }
                return try await demo.client.send(to: demo.url("/open/echo"))
            }
            sending.cancel()
            let error = try await clientError { try await sending.value }
            #expect(error.kind == .cancelled)
            #expect(demo.upstream.recorder.record.hits.isEmpty)
        }
    }

    @Test("requests end with the client, and later ones are refused")
    func shutDown() async throws {
        try await withDemo { demo in
            demo.upstream.faults.add(Fault(.hang, at: nil))
            let sending = Task { try await demo.client.send(to: demo.url("/open/hang")) }
            #expect(await demo.upstream.recorder.waitUntil { $0.count("GET", "/open/hang") == 1 })
            await demo.client.shutdown()
            let ended = try await clientError { try await sending.value }
            #expect(ended.kind == .shutDown)
            let ended2 = try await clientError { try await demo.client.send(to: demo.url("/")) }
            #expect(ended2.kind == .shutDown)
            await demo.client.shutdown()
        }
    }

    @Test("a response can be read to its end after its client was released")
    func responseOutlivesClient() async throws {
        let upstream = FakeUpstream()
        try upstream.start()
        defer { upstream.stop() }
        var client: ChallengeClient? = try ChallengeClient()
        let response = try await client?.send(to: "http://127.0.0.1:\(upstream.port)/open/bytes?count=3000000")
        client = nil
        #expect(try await response?.collect(upTo: .max).count == 3_000_000)
    }

    @Test("a reader that is slow holds the server back, and loses nothing")
    func backPressure() async throws {
        try await withDemo { demo in
            let response = try await demo.client.send(to: demo.url("/open/bytes?count=20000000"))
            var (count, longest) = (0, 0)
            for try await piece in response.body {
                count += piece.count
                longest = max(longest, piece.count)
                await Task.yield()
            }
            #expect(count == 20_000_000)
            #expect(longest <= 160 * 1024)
        }
    }
}
