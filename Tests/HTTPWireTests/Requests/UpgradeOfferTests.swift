// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

/// What is offered by a request with these fields.
private func offer(_ fields: String, version: String = "1.1") -> String? {
    let raw = latin1("GET / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n\r\n")
    var parser = RequestHeadParser()
    guard case .complete = parser.parse(raw.span), let offer = UpgradeOffer(parser.head, in: raw.span) else {
        return nil
    }
    var queue = ByteQueue()
    offer.write(raw.span, to: &queue)
    return queue.withSpan { $0.text(ByteRange(start: 0, end: $0.count)) }
}

/// The rule that an answer with these lines breaks, to a request that offers `asked`.
private func refusal(_ asked: String, _ answer: String) throws -> WireErrorCode? {
    let request = latin1("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: \(asked)\r\n\r\n")
    var parser = RequestHeadParser()
    guard case .complete = parser.parse(request.span), let offer = UpgradeOffer(parser.head, in: request.span) else {
        return .requestLineInvalid
    }
    let bytes = latin1(answer)
    var scanner = ResponseHeadScanner()
    try scanner.scan(bytes.span)
    do throws(WireError) {
        try offer.check(scanner.head, in: bytes.span, askedBy: request.span)
        return nil
    } catch {
        #expect(error.status == 502)
        return error.code
    }
}

@Suite("Offers of other protocols")
struct UpgradeOfferTests {
    @Test("protocols are offered in order, with all Upgrade lines as one list")
    func order() {
        #expect(offer("Connection: Upgrade\r\nUpgrade: websocket") == "websocket")
        #expect(offer("Connection: keep-alive, UPGRADE\r\nUpgrade: IRC/6.9 ,, RTA/x11") == "IRC/6.9, RTA/x11")
        #expect(offer("Connection: upgrade\r\nUpgrade: a/1\r\nUpgrade: b\r\nContent-Length: 0") == "a/1, b")
    }

    @Test("an upgrade to HTTP itself is never offered")
    func http() {
        #expect(offer("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA") == nil)
        #expect(offer("Connection: Upgrade\r\nUpgrade: H2C, websocket, HTTP/2.0, h2/1, https") == "websocket")
        #expect(offer("Connection: Upgrade\r\nUpgrade: h2cx, xhttp") == "h2cx, xhttp")
    }

    @Test(
        "a request with an empty or malformed Upgrade is an ordinary request",
        arguments: [
            "Upgrade: websocket", "Connection: Upgrade", "Connection: upgraded\r\nUpgrade: websocket",
            "Connection: Upgrade\r\nUpgrade:", "Connection: Upgrade\r\nUpgrade: ,",
            "Connection: Upgrade\r\nUpgrade: a b",
            "Connection: Upgrade\r\nUpgrade: a/", "Connection: Upgrade\r\nUpgrade: /1",
            "Connection: Upgrade\r\nUpgrade: a/b/c",
            "Connection: Upgrade\r\nUpgrade: a;b", "Connection: Upgrade\r\nUpgrade: \"a\"",
            "Connection: Upgrade\r\nUpgrade: a\r\nContent-Length: 1",
            "Connection: Upgrade\r\nUpgrade: a\r\nTransfer-Encoding: chunked",
            "Connection: Upgrade\r\nUpgrade: 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
        ])
    func nothing(fields: String) {
        #expect(offer(fields) == nil)
    }

    @Test("an HTTP/1.0 request cannot switch protocols")
    func old() { #expect(offer("Connection: Upgrade\r\nUpgrade: websocket", version: "1.0") == nil) }

    @Test("a switch to an offered protocol is accepted, ignoring case")
    func taken() throws {
        let yes = "HTTP/1.1 101 Switching Protocols\r\n"
        #expect(try refusal("websocket", yes + "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n") == nil)
        #expect(try refusal("a/1, b", yes + "Connection: x, upgrade\r\nUpgrade: b, a/1\r\n\r\n") == nil)
    }

    @Test(
        "a switch to a protocol that was not offered, or to none, is refused",
        arguments: [
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: b\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: a, b\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: a/1\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: a;b\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade:\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n\r\n",
            "HTTP/1.1 101 Yes\r\nUpgrade: a\r\n\r\n", "HTTP/1.0 101 Yes\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n",
            "HTTP/2 101\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n",
            "HTTP/1.1 200 OK\r\nConnection: Upgrade\r\nUpgrade: a\r\n\r\n",
        ])
    func refused(answer: String) throws {
        #expect(try refusal("a", answer) == .switchInvalid)
    }
}
