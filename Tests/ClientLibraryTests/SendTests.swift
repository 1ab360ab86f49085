// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import FakeServers
import HTTPTypes
import LoginExamples
import TestSupport
import Testing

@Suite("A client sends requests", .timeLimit(.minutes(10)))
struct SendTests {
    @Test("a response has its status, fields and body")
    func wholeResponse() async throws {
        try await withDemo { demo in
            let response = try await demo.client.send(to: demo.url("/open/bytes?count=100000"))
            #expect(response.status == .ok)
            #expect(response.head.headerFields[.contentLength] == "100000")
            #expect(try await response.collect(upTo: 100_000).count == 100_000)
        }
    }

    @Test("fields of the program go along, but for those that concern the connection")
    func fields() async throws {
        try await withDemo { demo in
            let seen = Notes()
            demo.upstream.override { request in
                seen.add(
                    "\(request.field("X-Own") ?? "-") \(request.field("TE") ?? "-") \(request.field("Host") ?? "-")")
                return nil
            }
            let name = try #require(HTTPField.Name("X-Own"))
            _ = try await demo.client.send(
                to: demo.url("/open/echo"), fields: [name: "1", .te: "trailers", .connection: "close"])
            #expect(seen.all == ["1 - 127.0.0.1:\(demo.upstream.port)"])
        }
    }

    @Test(
        "a program's cookies go in one Cookie line, alone and beside a session's", arguments: ["/open/echo", "/form/a"])
    func cookies(path: String) async throws {
        try await withDemo { demo in
            let seen = Notes()
            demo.upstream.override { request in
                if request.path == path {
                    seen.add(request.fields.filter { $0.name == "Cookie" }.map(\.value).joined(separator: "|"))
                }
                return nil
            }
            try demo.client.registerChallengeHandler(FormHandler { _ in ("ann", "demo") })
            var fields = HTTPFields()
            // This setter makes one field of each cookie.
            fields[HTTPField.Name.cookie] = "a=1; b=2"
            #expect(try await demo.client.send(to: demo.url(path), fields: fields).status == .ok)
            // The login's own requests come between the caller's.
            #expect(seen.all.first == "a=1; b=2" && seen.all.last?.hasSuffix("a=1; b=2") == true, "\(seen.all)")
            #expect(!seen.all.contains { $0.contains("|") }, "\(seen.all)")
            #expect(demo.upstream.recorder.record.violations == [])
        }
    }

    @Test("a body of bytes arrives as it is")
    func bytes() async throws {
        try await withDemo { demo in
            let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
            _ = try await demo.client.send(.post, to: demo.url("/open/echo"), body: .bytes(bytes))
            #expect(demo.upstream.recorder.record.hits.map(\.size) == [300_000])
        }
    }

    @Test("a body in pieces arrives whole, with a length and without", arguments: [UInt64?.none, 500_000])
    func pieces(length: UInt64?) async throws {
        try await withDemo { demo in
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            for _ in 0..<50 { continuation.yield(Array(repeating: 7, count: 10_000)) }
            continuation.finish()
            _ = try await demo.client.send(
                .put, to: demo.url("/open/echo"), body: .stream(stream, length: length))
            #expect(demo.upstream.recorder.record.hits.map(\.size) == [500_000])
        }
    }

    @Test("a body of another length than declared fails the request", arguments: [5 as UInt64, 15])
    func wrongLength(length: UInt64) async throws {
        try await withDemo { demo in
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            continuation.yield(Array(repeating: 7, count: 10))
            continuation.finish()
            let error = try await clientError {
                try await demo.client.send(.put, to: demo.url("/open/echo"), body: .stream(stream, length: length))
            }
            #expect(error.kind == .requestBody)
        }
    }

    @Test("a body whose next piece does not come fails the request in time")
    func lateBody() async throws {
        try await withDemo {
            $0.timeouts.requestBody = .milliseconds(100)
        } _: { demo in
            let (stream, continuation) = AsyncStream<[UInt8]>.makeStream()
            continuation.yield([1])
            let error = try await clientError {
                try await demo.client.send(.put, to: demo.url("/open/echo"), body: .stream(stream))
            }
            continuation.finish()
            #expect(error.kind == .requestBody)
        }
    }

    @Test("a longer body than wanted is broken off")
    func bodyTooLong() async throws {
        try await withDemo { demo in
            let response = try await demo.client.send(to: demo.url("/open/bytes?count=100000000"))
            let error = try await clientError { try await response.collect(upTo: 1000) }
            #expect(error.kind == .bodyTooLong)
        }
    }

    @Test("an answer that breaks off in its middle is an error, and no shorter one")
    func brokenBody() async throws {
        try await withDemo { demo in
            demo.upstream.faults.add(Fault(.cut(after: 5000), at: nil))
            let response = try await demo.client.send(to: demo.url("/open/bytes?count=100000"))
            let error = try await clientError { try await response.collect(upTo: 1_000_000) }
            #expect(error.kind == .unreachable)
        }
    }

    @Test("an address without a server is an error that says so")
    func unreachable() async throws {
        try await withDemo { demo in
            demo.upstream.stop()
            let error = try await clientError { try await demo.client.send(to: demo.url("/open/echo")) }
            #expect(error.kind == .unreachable)
        }
    }

    @Test("a redirect is a response, and is not followed")
    func redirect() async throws {
        try await withDemo { demo in
            demo.upstream.override { _ in FakeResponse(302, fields: [("Location", "http://127.0.0.1:1/")]) }
            let response = try await demo.client.send(to: demo.url("/x"))
            #expect(response.status == .found)
        }
    }

    @Test("a request that cannot be sent is refused before anything is")
    func badRequests() async throws {
        try await withDemo { demo in
            for address in ["/open/echo", "ftp://127.0.0.1/", "http://ann:demo@127.0.0.1/"] {
                let error = try await clientError { try await demo.client.send(to: address) }
                #expect(error.kind == .badRequest)
            }
            for (method, path) in [(HTTPRequest.Method.get, "/a b"), (.trace, "/")] {
                let request = HTTPRequest(method: method, scheme: "http", authority: "127.0.0.1", path: path)
                let error = try await clientError { try await demo.client.send(request) }
                #expect(error.kind == .badRequest)
            }
        }
    }

    @Test("more requests at once than allowed are refused")
    func overloaded() async throws {
        try await withDemo {
            $0.limits.requests = 1
        } _: { demo in
            let first = try await demo.client.send(to: demo.url("/open/bytes?count=100000000"))
            let error = try await clientError { try await demo.client.send(to: demo.url("/open/echo")) }
            #expect(error.kind == .overloaded)
            first.body.breakOff()
        }
    }
}
