// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import TestSupport
import Testing

@Suite("Requests that are long, late or many", .timeLimit(.minutes(10)))
struct LongRequestTests {
    private let ann = FixedLogin(LoginCredentials(username: "ann", password: "demo"))

    @Test("a body in pieces is sent again after a login that could not come first")
    func piecesAgain() async throws {
        try await withDemo { demo in
            demo.upstream.override { $0.method == "HEAD" ? FakeResponse(200) : nil }
            demo.client.registerChallengeHandler(BasicChallengeHandler(ann))
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            for _ in 0..<10 { continuation.yield(Array(repeating: 7, count: 1000)) }
            continuation.finish()
            let response = try await demo.client.send(.post, to: demo.url("/basic/"), body: .stream(stream))
            #expect(response.status == .ok)
            #expect(demo.upstream.recorder.record.hits.filter { $0.method == "POST" }.map(\.size) == [10_000])
        }
    }

    @Test("a body of unknown length that is too long to be kept arrives once after the login")
    func cold() async throws {
        try await withDemo {
            $0.limits.replay = 10_000
        } _: { demo in
            demo.client.registerChallengeHandler(BasicChallengeHandler(ann))
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            for _ in 0..<50 { continuation.yield(Array(repeating: 7, count: 20_000)) }
            continuation.finish()
            let response = try await demo.client.send(.post, to: demo.url("/basic/"), body: .stream(stream))
            #expect(response.status == .ok)
            #expect(demo.upstream.recorder.record.hits.filter { $0.method == "POST" }.map(\.size) == [1_000_000])
        }
    }

    @Test("a body too long to be kept fails at an unexpected challenge, and the next try has the session")
    func notReplayable() async throws {
        try await withDemo {
            $0.limits.replay = 10_000
        } _: { demo in
            demo.upstream.override { $0.method == "HEAD" ? FakeResponse(200) : nil }
            demo.client.registerChallengeHandler(BasicChallengeHandler(ann))
            // The body has no declared length.
            func send() async throws -> ClientResponse {
                let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
                for _ in 0..<50 { continuation.yield(Array(repeating: 7, count: 20_000)) }
                continuation.finish()
                return try await demo.client.send(.post, to: demo.url("/basic/"), body: .stream(stream))
            }
            let error = try await clientError { try await send() }
            #expect(error.kind == .bodyNotReplayable)
            // Another request establishes the session.
            while try await demo.client.send(to: demo.url("/basic/")).status != .ok {}
            let response = try await send()
            #expect(response.status == .ok)
        }
    }

    @Test("a response whose body does not go on is given up")
    func idle() async throws {
        try await withDemo {
            $0.timeouts.idle = .milliseconds(200)
        } _: { demo in
            demo.upstream.override { _ in
                var response = FakeResponse(200)
                response.body = .chunks([.init("a"), .init("b", after: .seconds(30))])
                return response
            }
            let response = try await demo.client.send(to: demo.url("/"))
            let error = try await clientError { try await response.collect(upTo: 100) }
            #expect(error.kind == .timedOut)
        }
    }

    @Test("the program's own cookies go along, and those of the login stay with the client")
    func cookies() async throws {
        try await withDemo { demo in
            let seen = Notes()
            demo.upstream.override { request in
                seen.add(request.field("Cookie") ?? "")
                return nil
            }
            try demo.client.registerChallengeHandler(FormHandler { again in again ? nil : ("ann", "demo") })
            let response = try await demo.client.send(to: demo.url("/form/a"), fields: [.cookie: "own=1"])
            #expect(response.head.headerFields[values: .setCookie].isEmpty)
            #expect(seen.all.first == "own=1")
            #expect(seen.all.last?.contains("own=1") == true && seen.all.last?.contains("JSESSIONID=") == true)
        }
    }

    @Test("200 requests at once are answered, with one login")
    func many() async throws {
        try await withDemo { demo in
            demo.client.registerChallengeHandler(BasicChallengeHandler(ann))
            try await withThrowingTaskGroup(of: HTTPResponse.Status.self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let response = try await demo.client.send(to: demo.url("/basic/\(number)"))
                        _ = try await response.collect(upTo: 10_000)
                        return response.status
                    }
                }
                for try await status in group { #expect(status == .ok) }
            }
            #expect(demo.upstream.recorder.record.wrongAnswers["basic"] == nil)
        }
    }
}

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
