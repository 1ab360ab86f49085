// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeHandling
internal import Curl
internal import HTTPWire

/// The connection on which a caller authenticates itself to a server (NTLM, and some mechanisms of Negotiate).
///
/// All messages of that handshake have to go over one connection. It is kept for the caller's next message only, and
/// only while the server asks for one: then it is nobody's yet.
struct CallerHandshake {
    /// The upstream's client, whose settings the connection has.
    let client: UpstreamClient
    /// The idle connection, if there is one.
    let idleStreams = IdleStreams<HTTP1Stream>(limit: 1)
}

extension Exchange {
    /// Returns a stream for `request` with `fields`.
    func makeStream(
        for request: ExchangeRequest, carrying fields: SessionFields, at route: RouteSessions, of client: UpstreamClient
    ) throws(CurlError) -> any UpstreamStream {
        let connections = ConnectionUse(of: request, carrying: fields, at: route)
        guard case .own = connections, !request.isUpgrade else {
            return try client.streams.stream(for: request, on: connections, sessions: fields)
        }
        if let handshake, handshake.client !== client { endHandshake() }
        let handshake = handshake ?? CallerHandshake(client: client)
        self.handshake = handshake
        return try client.streams.stream(for: request, returningTo: handshake.idleStreams)
    }

    /// Ends the caller's handshake unless the server asks for its next message.
    func settleHandshake(after transfer: Transfer) {
        guard transfer.isAnswered, transfer.answer.status == 401 else { return endHandshake() }
    }

    /// Closes the connection of the caller's handshake: now if idle, or when its request ends.
    func endHandshake() {
        handshake?.idleStreams.close()
        handshake = nil
    }
}
