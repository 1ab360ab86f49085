// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import ChallengeClient
internal import Curl
internal import HTTPWire

// What the exchange brings back.
extension DownstreamConnection: ExchangeCaller {
    func writeFields(
        into fields: HeaderList, overriddenBy sessions: SessionFields, cookies: RequestCookies?
    ) throws(CurlError) {
        guard let upstream else { return }
        // The answer speaks of authentication to whom the credentials belong that go up.
        response.hidesAuthentication = !sessions.isEmpty && !terms.keepsCredentials
        try head.withSpan { (bytes) throws(CurlError) in
            try ForwardedRequest.write(
                parser.head, in: bytes, authority: upstream.authority, terms: terms, overriddenBy: sessions,
                cookies: cookies, to: fields)
        }
        if let offer { try write(offer, to: fields) }
    }

    func exchangeDelivers(interim head: ResponseHead, in bytes: Span<UInt8>) {
        if head.status == 100 { awaitsContinue = false }
        response.writeInterim(head, in: bytes, to: &output)
        worker.note(self)
    }

    func exchangeDelivers(headOf transfer: Transfer) {
        let answer = transfer.answer
        worker.log.answered(exchange?.upstreamName ?? "")
        // A refusal that comes before the body is complete: nobody reads the rest of it, and the caller is to know
        // (RFC 9112 §9.6).
        response.held = exchange?.heldCookies ?? HeldCookies()
        tally.status = answer.status
        accessNote?.status = answer.status
        let keepsAlive = staysOpen && (isBodyComplete || answer.status < 300)
        self.keepsAlive = transfer.head.withSpan {
            response.writeHead(
                answer, in: $0, keepsAlive: keepsAlive, to: &output, date: worker.date, addresses: addressMap)
        }
        worker.note(self)
    }

    func exchangeDelivers(bodyOf transfer: Transfer) {
        // More than a window waits already: what stays in the transfer holds libcurl back.
        guard output.count < Self.outputWindow else { return }
        let isCopied = !output.isEmpty && output.count < Self.copiedAtMost || transfer.body.count < Self.copiedAtMost
        if isCopied || !response.passesBodyAsItIs {
            accessNote?.bytes += transfer.body.count
            transfer.body.withSpan { response.writeBody($0, to: &output) }
            transfer.body.removeAll(keepingCapacity: Transfer.bodyCapacity)
        } else if output.isEmpty {
            accessNote?.bytes += transfer.body.count
            swap(&output, &transfer.body)
        } else {
            // Not behind the long piece that is being written: it comes when that has gone, and then without a copy.
            return
        }
        worker.note(self)
    }

    func exchangeDelivers(trailersOf transfer: Transfer) {
        guard response.takesTrailers else { return }
        response.beginTrailers(to: &output)
        transfer.forEachTrailer { ResponseWriter.field($0, $1, to: &output) }
        response.endTrailers(to: &output)
    }

    func exchangeHasAll() {
        response.writeEnd(to: &output)
        worker.note(self)
    }

    func exchangeEnded() {
        response.writeEnd(to: &output)
        tally.isWhole = true
        requestEnded()
    }

    func exchangeFailed(_ error: ExchangeError) {
        let upstream = exchange?.upstreamName ?? ""
        log(error)
        reply(LocalReply(error, upstream: upstream, now: worker.wallClock()))
    }

    private func log(_ error: ExchangeError) {
        worker.log.failed(
            error, upstream: exchange?.upstreamName ?? "", rounds: exchange?.rounds ?? 0, id: exchange?.id)
    }

    func exchangeBroke(_ error: ExchangeError) {
        tally.isBroken = true
        log(error)
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

    /// The request's body will not come to its end: the exchange is given up. `refusal` is for a caller who has got nothing of
    /// a response yet.
    func breakOff(_ refusal: LocalReply?) {
        exchange?.cancel()
        keepsAlive = false
        if response.isWhole {
            tally.isWhole = true
            requestEnded()
        } else if let refusal, !response.hasBegun {
            reply(refusal)
        } else {
            close(resetting: true)
        }
    }

    func exchangeWantsBody() {
        if awaitsContinue {
            awaitsContinue = false
            if !response.hasBegun { output.append("HTTP/1.1 100 Continue\r\n\r\n") }
        }
        worker.note(self)
    }
}
