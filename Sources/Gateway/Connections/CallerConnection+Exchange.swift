// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

// What the exchange brings back.
extension CallerConnection: ExchangeCaller {
    func writeFields(into fields: HeaderList, overriddenBy sessions: SessionFields) throws(CurlError) {
        try head.withSpan { (bytes) throws(CurlError) in
            try ForwardedRequest.write(
                parser.head, in: bytes, authority: upstreamAuthority, overriddenBy: sessions, to: fields)
        }
    }

    func exchangeDelivers(headOf transfer: Transfer) throws(WireError) {
        let keepsAlive = staysOpen
        self.keepsAlive = try transfer.head.withSpan { (bytes) throws(WireError) in
            try response.writeHead(bytes, keepsAlive: keepsAlive, to: &output)
        }
        worker.note(self)
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        // More than a window waits already: what stays in the transfer holds libcurl back.
        guard output.count < Self.outputWindow else { return }
        transfer.body.withSpan { response.writeBody($0, to: &output) }
        transfer.body.removeAll(keepingCapacity: Self.outputWindow)
        worker.note(self)
    }

    func exchangeEnded() {
        response.writeEnd(to: &output)
        requestEnded()
    }

    func exchangeFailed(_ error: ExchangeError) {
        let upstream = exchange?.upstreamName ?? ""
        worker.log(error, upstream: upstream, rounds: exchange?.rounds ?? 0)
        reply(LocalReply(error, upstream: upstream, now: worker.wallClock()))
    }

    func exchangeBroke(_ error: ExchangeError) {
        worker.log(error, upstream: exchange?.upstreamName ?? "", rounds: exchange?.rounds ?? 0)
        guard response.endsWithConnection else {
            // What was received goes out; then the connection ends, and the framing shows that the message is not complete
            // (RFC 9112 §8).
            keepsAlive = false
            requestEnded()
            return
        }
        // Here only a reset cannot be taken for the end of the body.
        flush()
        close(resetting: true)
    }

    func exchangeWantsBody() {
        worker.note(self)
    }
}
