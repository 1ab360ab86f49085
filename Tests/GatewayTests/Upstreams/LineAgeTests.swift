// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Glibc
import Testing

@testable import ChallengeClient

/// Whenever libcurl connects, it closes what has rested for too long: also a connection that it has only made, since it knows nothing
/// of those who speak on it.
@Suite("Lines that are old to libcurl")
struct LineAgeTests {
    /// Has the worker's libcurl connect to that port, with everything that has rested for a second being too old to it.
    private func connectAgain(_ proxy: Proxy, to address: String) {
        proxy.services.roster.onSomeWorker { runtime in
            do {
                let easy = try EasyHandle()
                try easy.set(.url, address)
                try easy.set(.maxIdleAge, 1)
                try easy.connectOnly()
                try runtime.connections().start(easy, delegate: Nobody())
            } catch {
                Issue.record(error)
            }
        }
    }

    @Test("an answer that is under way comes to its end")
    func underWay() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try Proxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
        _ = try caller.head()
        #expect(try caller.read(count: 4) == Array("half".utf8))
        // libcurl counts whole seconds.
        sleep(2)
        connectAgain(proxy, to: "http://127.0.0.1:\(upstream.port)/")
        _ = try upstream.accept()
        try server.send("rest")
        #expect(try caller.read(count: 4) == Array("rest".utf8))
        // It is as good as before.
        try caller.send(get("/2"))
        #expect(try server.head().hasPrefix("GET /2 "))
        try server.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
    }

    @Test("one within TLS that rests takes the next request")
    func resting() throws {
        let upstream = try TLSUpstream()
        let proxy = try Proxy(.secure(port: upstream.port, connections: .trusting { $0.version = .http1 }))
        #expect(try proxy.fetch(get("/who")).body == "None TLSv1.3 1")
        sleep(2)
        connectAgain(proxy, to: "http://127.0.0.1:\(upstream.port)/")
        usleep(200_000)
        #expect(try proxy.fetch(get("/who")).body == "None TLSv1.3 1")
    }
}

/// Wants to know nothing of it.
private final class Nobody: TransferDelegate {
    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { true }
    func transferEnded(_ handle: EasyHandle, error: CurlError?) {}
}
