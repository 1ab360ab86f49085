// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import Testing

/// A request for another protocol.
func upgrade(_ path: String = "/", to name: String = "echo", _ fields: String = "") -> String {
    get(path, "Connection: Upgrade\r\nUpgrade: \(name)\r\n\(fields)")
}

/// The answer that grants it.
func switching(to name: String = "echo", _ fields: String = "") -> String {
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: \(name)\r\n\(fields)\r\n"
}

/// A caller and an upstream that have switched to another protocol, with the proxy between.
struct OpenTunnel {
    let server: ScriptedUpstream
    let proxy: TestProxy
    let caller: Peer
    let upstream: Peer

    /// `buffer`: of either peer's receiving, so that little is on the way.
    init(timeouts: UpstreamPlan.Timeouts = .init(), buffer: Int32? = nil) throws {
        server = try ScriptedUpstream(receiveBuffer: buffer)
        proxy = try TestProxy(.bank(port: server.port, timeouts: timeouts))
        caller = try proxy.connect(receiveBuffer: buffer)
        try caller.send(upgrade())
        upstream = try server.accept()
        _ = try upstream.head()
        try upstream.send(switching())
        #expect(try caller.head().hasPrefix("HTTP/1.1 101 "))
    }

    /// Waits until the proxy holds nothing of it any more.
    func expectOver(location: SourceLocation = #_sourceLocation) {
        proxy.expectNoConnections(location: location)
        #expect(proxy.server.figures.openTunnels == 0, sourceLocation: location)
    }
}
