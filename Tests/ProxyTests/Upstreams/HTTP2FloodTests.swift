// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Glibc
import Proxy
import Synchronization
import TestSupport
import Testing

/// Frames of HTTP/2, as bytes (RFC 9113 §4.1).
private enum Frame {
    static func bytes(_ type: UInt8, _ flags: UInt8 = 0, stream: UInt8 = 0, _ payload: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        return [UInt8(count >> 16 & 0xFF), UInt8(count >> 8 & 0xFF), UInt8(count & 0xFF), type, flags, 0, 0, 0, stream]
            + payload
    }

    static let settings = bytes(4)
    static let settingsAcknowledged = bytes(4, 1)
    /// `:status: 200`, by its index in the static table (RFC 7541, appendix A).
    static let head = bytes(1, 4, stream: 1, [0x88])
    static func data(_ bytes: [UInt8], ends: Bool = false) -> [UInt8] {
        Self.bytes(0, ends ? 1 : 0, stream: 1, bytes)
    }
}

/// Frames that a server may send without end, by name.
private let floods: [String: [UInt8]] = [
    "PING": Frame.bytes(6, 0, [0, 1, 2, 3, 4, 5, 6, 7]),
    "PING acknowledged": Frame.bytes(6, 1, [0, 1, 2, 3, 4, 5, 6, 7]),
    "SETTINGS": Frame.settings, "WINDOW_UPDATE": Frame.bytes(8, 0, stream: 1, [0, 0, 0, 1]),
    "PRIORITY": Frame.bytes(2, 0, stream: 1, [0, 0, 0, 0, 16]), "empty DATA": Frame.data([]),
    "padding": Frame.bytes(0, 8, stream: 1, [3, 0, 0, 0]), "unknown": Frame.bytes(0xBE, 0, stream: 1, [1, 2, 3]),
    "large unknown": Frame.bytes(0xBE, 0, [UInt8](repeating: 7, count: 16_384)),
    "ALTSVC": Frame.bytes(10, 0, stream: 1, [0, 0, 97]), "data of an ended stream": Frame.bytes(0, 0, stream: 1, [1]),
    "empty CONTINUATION": Frame.bytes(1, 0, stream: 3) + Frame.bytes(9, 0, stream: 3),
    "a byte of data in each 64 KB": Frame.data([120])
        + (0..<3_800).flatMap { _ in Frame.bytes(6, 1, [0, 1, 2, 3, 4, 5, 6, 7]) },
]

@Suite("Upstreams that send HTTP/2 frames without content")
struct HTTP2FloodTests {
    /// The most that a test sends. Sockets hold a few megabytes.
    private static let most = 256 * 1024 * 1024

    /// Returns a proxy of one worker with the scripted server at `/h2/`, and an HTTP/1.1 server elsewhere.
    private func proxy(_ server: ScriptedUpstream, _ other: AnsweringUpstream) throws -> TestProxy {
        let router = Router(
            routes: [Router.Route(path: "/h2/", upstream: "h2", stripsPrefix: true)], fallback: "bank")
        var connections = ConnectionSettings()
        connections.version = .http2
        let plan = UpstreamPlan(
            name: "h2", base: WebURL(origin: Origin(scheme: .http, host: "127.0.0.1", port: server.port), path: "/"),
            connections: connections)
        return try TestProxy(
            ProxyPlan(
                listeners: [(point: .tcp(host: "127.0.0.1", port: 0), plan: .proxy(router))],
                upstreams: [.bank(port: other.port), plan]))
    }

    /// Takes the connection of the caller's request, and answers with a head.
    private func begin(_ server: ScriptedUpstream, _ caller: Peer) throws -> Peer {
        try caller.send(get("/h2/x"))
        let connection = try server.accept()
        // The client's connection preface (RFC 9113 §3.4).
        _ = try connection.read(count: 24)
        // Up to the head of the request.
        var type = UInt8(0)
        while type != 1 {
            let header = try connection.read(count: 9)
            type = header[3]
            _ = try connection.read(count: Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2]))
        }
        try connection.send(Frame.settings + Frame.settingsAcknowledged + Frame.head)
        return connection
    }

    @Test(
        "a flood of them ends that connection, and the worker serves other callers meanwhile",
        arguments: floods.keys.sorted())
    func flood(name: String) throws {
        let server = try ScriptedUpstream()
        let other = try AnsweringUpstream { _, _ in answer("200 OK", "other") }
        let proxy = try proxy(server, other)
        let caller = try proxy.connect()
        let connection = try begin(server, caller)
        // A request whose answer has begun is not sent again.
        #expect(try caller.head().hasPrefix("HTTP/1.1 200"))
        if name == "data of an ended stream" { try connection.send(Frame.data([120], ends: true)) }
        let frame = try #require(floods[name])
        let piece = (0..<max(1, 65_536 / frame.count)).flatMap { _ in frame }
        let flood = Flood(connection, piece, atMost: Self.most)
        for _ in 0..<20 { #expect(try proxy.fetch(get("/")).body == "other") }
        #expect(flood.ended.wait(), "the flood ends")
        #expect(flood.sent < Self.most / 4, "\(name): \(flood.sent) bytes were taken")
        #expect(try proxy.fetch(get("/")).body == "other")
        switch name {
        case "data of an ended stream":
            // Its connection stays open for the caller's next request.
            #expect(try caller.read(until: "0\r\n\r\n") == "1\r\nx\r\n0\r\n\r\n")
        // libnghttp2 ends the session itself, and libcurl leaves the answer to its time limit.
        case "empty CONTINUATION": break
        default: #expect((try? caller.readAll())?.hasSuffix("0\r\n\r\n") != true)
        }
    }
}

/// Sends pieces on a thread of its own, until the connection ends or enough are sent.
private final class Flood: Sendable {
    private struct Carrier: @unchecked Sendable {
        // The thread only sends, and the test does not use it meanwhile.
        let peer: Peer
    }

    let ended = Signal()
    private let count = Mutex(0)

    var sent: Int { count.withLock { $0 } }

    init(_ peer: Peer, _ piece: [UInt8], atMost most: Int) {
        let carrier = Carrier(peer: peer)
        inBackground { [self] in
            while sent < most, (try? carrier.peer.send(piece)) != nil { count.withLock { $0 += piece.count } }
            carrier.peer.close()
            ended.set()
        }
    }
}
