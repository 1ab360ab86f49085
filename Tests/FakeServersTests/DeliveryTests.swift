// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import FakeServers
import TestSupport
import Testing

@Suite("how an answer is delivered")
struct DeliveryTests {
    private func serving(_ response: FakeResponse, _ body: (RawClient, LoopbackServer) throws -> Void) throws {
        let server = LoopbackServer { _ in response }
        try server.start()
        defer { server.stop() }
        let client = try RawClient(port: server.port)
        try client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        try body(client, server)
    }

    @Test("in chunks, as its pieces come")
    func chunks() throws {
        var response = FakeResponse(200)
        response.body = .chunks([.init("one"), .init(""), .init("two-two-two-two-two", after: .milliseconds(1))])
        try serving(response) { client, _ throws in
            let text = try client.read(until: "0\r\n\r\n")
            #expect(
                text.hasSuffix("Transfer-Encoding: chunked\r\n\r\n3\r\none\r\n13\r\ntwo-two-two-two-two\r\n0\r\n\r\n"))
        }
    }

    @Test("to the end of the connection")
    func untilClose() throws {
        var response = FakeResponse(200)
        response.body = .untilClose(Array("all".utf8))
        try serving(response) { client, _ throws in
            #expect(try client.readAll()?.hasSuffix("Connection: close\r\n\r\nall") == true)
        }
    }

    @Test("generated, with its length")
    func generated() throws {
        var response = FakeResponse(200)
        response.body = .generated(count: 200_000)
        try serving(response) { client, _ throws in
            let body = try client.response().body
            #expect(body.utf8.count == 200_000)
            #expect(body.hasPrefix("abcdefghijklmnopqrstuvwxyzabc"))
        }
    }

    @Test("as raw bytes that are no HTTP")
    func raw() throws {
        var response = FakeResponse(200)
        response.body = .raw(Array("SSH-2.0\r\n".utf8))
        try serving(response) { client, _ throws in #expect(try client.readAll() == "SSH-2.0\r\n") }
    }

    @Test("cut off after so many bytes", arguments: [0, 5, 100])
    func cut(after count: Int) throws {
        var response = FakeResponse(200, body: [UInt8](repeating: 65, count: 1000))
        response.delivery.cutsAfter = count
        try serving(response) { client, server throws in
            #expect(try client.readAll()?.utf8.count == count)
            #expect(server.recorder.record.abandonedAnswers == 0)
        }
    }

    @Test("cut off by a reset")
    func reset() throws {
        var response = FakeResponse(200)
        response.delivery.cutsAfter = 0
        response.delivery.resets = true
        try serving(response) { client, _ throws in #expect(try client.readAll() == nil) }
    }

    @Test("never, until the peer leaves; and stop does not wait for it")
    func hang() async throws {
        var response = FakeResponse(200)
        response.delivery.hangs = true
        let hanging = response
        let server = LoopbackServer { _ in hanging }
        try server.start()
        defer { server.stop() }
        do {
            let leaving = try RawClient(port: server.port)
            try leaving.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await server.recorder.waitUntil { $0.maxConcurrent["/"] == 1 })
        }
        #expect(await server.recorder.waitUntil { $0.abandonedAnswers == 1 })
        let staying = try RawClient(port: server.port)
        try staying.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(await server.recorder.waitUntil { $0.maxConcurrent["/2"] == 1 })
        server.stop()
        #expect(try staying.readAll() == "")
    }

    @Test("without a body where the status or the method has none")
    func bodiless() throws {
        try serving(FakeResponse(204)) { client, _ throws in
            let head = try client.read(until: "\r\n\r\n")
            #expect(!head.contains("Content-Length"))
            try client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(try client.read(until: "\r\n\r\n").hasPrefix("HTTP/1.1 204 No Content\r\nDate: "))
        }
    }
}
