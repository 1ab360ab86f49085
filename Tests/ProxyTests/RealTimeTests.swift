// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Curl
import Glibc
import Proxy
import TestSupport
import Testing

@testable import ChallengeClient

/// Tests that have to wait for the system's clock, which libcurl uses: two seconds, without an upper bound.
@Suite("Waits of libcurl's clock")
struct RealTimeTests {
    /// Makes the worker's libcurl connect to `address` with a maximum idle age of one second, and waits for that.
    ///
    /// Whenever libcurl connects, it closes connections that were idle for too long. Those that it has only established are
    /// among them, since it does not see the traffic on them.
    private func connectAgain(_ proxy: TestProxy, to address: String) {
        let connection = Connection()
        proxy.services.roster.onSomeWorker { runtime in
            do {
                let easy = try EasyHandle()
                try easy.set(.url, address)
                try easy.set(.maxIdleAge, 1)
                try easy.connectOnly()
                try runtime.connections().start(easy, delegate: connection)
            } catch {
                Issue.record(error)
            }
        }
        #expect(connection.isMade.wait())
        proxy.settle()
    }

    /// Waits until idle connections are too old for libcurl, which counts whole seconds.
    private func waitUntilOld() { sleep(2) }

    @Test("on a connection that libcurl considers too old, an answer in progress is completed")
    func underWay() throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.bank(port: upstream.port))
        let caller = try proxy.connect()
        try caller.send(get("/1"))
        let server = try upstream.accept()
        _ = try server.head()
        try server.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
        _ = try caller.head()
        #expect(try caller.read(count: 4) == Array("half".utf8))
        waitUntilOld()
        connectAgain(proxy, to: "http://127.0.0.1:\(upstream.port)/")
        _ = try upstream.accept()
        try server.send("rest")
        #expect(try caller.read(count: 4) == Array("rest".utf8))
        // The connection is still usable.
        try caller.send(get("/2"))
        #expect(try server.head().hasPrefix("GET /2 "))
        try server.send(answer("200 OK", "two"))
        #expect(try caller.message().body == "two")
    }

    @Test("an idle TLS connection that libcurl considers too old takes the next request")
    func resting() throws {
        let upstream = try TLSUpstream()
        let proxy = try TestProxy(.secure(port: upstream.port, connections: .trusting { $0.version = .http1 }))
        #expect(try proxy.fetch(get("/who")).body == "None TLSv1.3 1")
        waitUntilOld()
        connectAgain(proxy, to: "http://127.0.0.1:\(upstream.port)/")
        #expect(try proxy.fetch(get("/who")).body == "None TLSv1.3 1")
    }
}

/// Delegate of a connection that libcurl only establishes.
private final class Connection: TransferDelegate, Sendable {
    let isMade = Signal()

    func transferReceived(headerLine: UnsafeRawBufferPointer) -> Bool { true }
    func transferReceived(body: UnsafeRawBufferPointer) -> BodyDisposition { .abort }
    func transferNeedsBody(_ buffer: UnsafeMutableRawBufferPointer) -> BodySupply { .abort }
    func transferRewinds(to offset: Int64) -> Bool { false }
    func transferWillSend(attempt: Int) -> Bool { true }
    func transferEnded(_ handle: EasyHandle, error: CurlError?) { isMade.set() }
}
