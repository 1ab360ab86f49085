// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

public import HTTPTypes

/// What came of a request for another protocol.
public enum UpgradeOutcome: Sendable {
    /// The server answered as to any other request: it does not switch.
    case response(ClientResponse)
    /// The connection has the other protocol now.
    case switched(ClientTunnel)
}

/// A connection that has another protocol, such as WebSocket: bytes both ways, which nobody looks at.
///
/// It ends with `close()`, when it is let go of, or where nothing moves for `ClientConfiguration.Timeouts.idle`.
public final class ClientTunnel: Sendable {
    /// The head of the 101.
    public let head: HTTPResponse
    /// What comes from the server, until it ends its side. Held back while nobody reads.
    public let incoming: ResponseBody
    private let life: ClientLife
    private let number: UInt64

    init(_ response: ClientResponse, life: ClientLife, number: UInt64) {
        head = response.head
        incoming = response.body
        self.life = life
        self.number = number
    }

    deinit { close() }

    /// Sends `bytes`, and returns when they have gone to the system: a server that does not read holds this back.
    ///
    /// Throws `unreachable` where the connection has ended, `shutDown` where the client has.
    public func send(_ bytes: some Sequence<UInt8>) async throws(ClientError) {
        let bytes = Array(bytes)
        let number = number
        guard !bytes.isEmpty else { return }
        let isSent = await withCheckedContinuation { continuation in
            let isTaken = life.perform { site in
                guard let exchange = site.exchange(number) else { return continuation.resume(returning: false) }
                exchange.send(bytes, continuation)
            } else: {
                continuation.resume(returning: false)
            }
            if !isTaken { continuation.resume(returning: false) }
        }
        guard isSent else { throw ClientError(.unreachable, detail: "The connection has ended; nothing can be sent.") }
    }

    /// Ends the connection.
    public func close() {
        let number = number
        _ = life.perform { $0.exchange(number)?.endTunnel() }
    }
}

extension ChallengeClient {
    /// Asks for another protocol on the connection (RFC 9110 section 7.8): `websocket`. The fields that the protocol wants, such as
    /// `Sec-WebSocket-Key`, are the request's own, and whether the server's are right is for the program to see.
    ///
    /// A challenge on the handshake is answered as on any other request. Throws what `send` throws.
    public func upgrade(
        _ request: HTTPRequest, to protocolName: String, timeout: Duration? = nil
    ) async throws(ClientError) -> UpgradeOutcome {
        var handshake = try ClientRequest(request, body: .none, timeout: timeout)
        handshake.upgrade = protocolName
        let (response, number) = try await perform(handshake)
        guard response.status.code == 101 else { return .response(response) }
        return .switched(ClientTunnel(response, life: life, number: number))
    }
}
