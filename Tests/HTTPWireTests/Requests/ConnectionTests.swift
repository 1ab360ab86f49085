// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import HTTPWire
import Testing

@Test("HTTP/1.1 keeps the connection unless told to close, HTTP/1.0 only when asked to")
func keepAlive() {
    #expect(head(fields: "A: b").keepsAlive)
    #expect(head(fields: "Connection: keep-alive").keepsAlive)
    #expect(!head(fields: "Connection: close").keepsAlive)
    #expect(!head(fields: "Connection: CLOSE").keepsAlive)
    #expect(!head(fields: "Connection: keep-alive, close").keepsAlive)
    #expect(!head(fields: "Connection: close\r\nConnection: keep-alive").keepsAlive)
    #expect(head(fields: "Connection: closed").keepsAlive)
    #expect(head(fields: "Proxy-Connection: close").keepsAlive)
    #expect(!head(fields: "A: b", version: "1.0").keepsAlive)
    #expect(head(fields: "Connection: Keep-Alive", version: "1.0").keepsAlive)
    #expect(!head(fields: "Keep-Alive: timeout=5", version: "1.0").keepsAlive)
    #expect(!head(fields: "Connection: keep-alive, close", version: "1.0").keepsAlive)
    #expect(head(fields: "A: b", version: "1.2").keepsAlive)
}

/// Returns the names of the lines after Host that may be forwarded.
private func forwarded(_ lines: String) -> [String] {
    let raw = "GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n\r\n"
    let bytes = latin1(raw)
    return head(raw).fields.dropFirst().filter { !$0.isHopByHop }.map { bytes.span.text($0.name) }
}

@Test("hop-by-hop fields are not forwarded, whether or not Connection names them")
func hopByHop() {
    let lines = [
        "Connection: x", "Keep-Alive: 5", "Proxy-Connection: close", "TE: trailers", "Trailer: A",
        "Transfer-Encoding: chunked", "Upgrade: h2c", "Proxy-Authorization: Basic x", "Proxy-Authenticate: Basic",
        "Proxy-Authentication-Info: a", "HTTP2-Settings: AAMAAABk",
    ]
    #expect(forwarded(lines.joined(separator: "\r\n")) == [])
}

@Test("a field that Connection names is not forwarded, wherever it is")
func nominated() {
    #expect(forwarded("A: 1\r\nConnection: a\r\nA: 2\r\nB: 3") == ["B"])
    #expect(forwarded("X-Long-Name: 1\r\nX-Long-Nama: 2\r\nConnection: x-LONG-name") == ["X-Long-Nama"])
    #expect(forwarded("Authorization: x\r\nCookie: a\r\nConnection: authorization, Cookie") == [])
    #expect(forwarded("Connection: b\r\nB: 1\r\nConnection: c\r\nC: 1\r\nD: 1") == ["D"])
    #expect(forwarded("Close: 1\r\nKeep-Alive: 1\r\nConnection: close, keep-alive") == [])
    #expect(forwarded("AB: 1\r\nA: 1\r\nConnection: ab") == ["A"])
    #expect(forwarded("Accept: 1\r\nConnection: Host") == ["Accept"])
}

@Test("a Connection that names Host marks only Host")
func nominatedHost() {
    let head = head(fields: "Connection: Host\r\nA: b")
    #expect(head.fields.map(\.isNominated) == [true, false, false])
    #expect(head.host != nil)
}

@Test("100-continue is the one expectation that is known")
func expectations() {
    #expect(head(fields: "A: b").expectation == .none)
    #expect(head(fields: "Expect: 100-continue").expectation == .continueFirst)
    #expect(head(fields: "Expect: 100-Continue").expectation == .continueFirst)
    #expect(head(fields: "Expect: 200-ok").expectation == .unknown)
    #expect(head(fields: "Expect:").expectation == .unknown)
    #expect(head(fields: "Expect: 100-continue, x").expectation == .unknown)
    #expect(head(fields: "Expect: x\r\nExpect: 100-continue").expectation == .unknown)
    #expect(head(fields: "Expect: 100-continue\r\nExpect: 100-continue").expectation == .unknown)
}

@Test("only an HTTP/1.1 request with a body waits for 100")
func awaitsContinue() {
    #expect(head(fields: "Expect: 100-continue\r\nContent-Length: 1").expectsContinue)
    #expect(head(fields: "Expect: 100-continue\r\nTransfer-Encoding: chunked").expectsContinue)
    #expect(!head(fields: "Expect: 100-continue").expectsContinue)
    #expect(!head(fields: "Expect: 100-continue\r\nContent-Length: 0").expectsContinue)
    #expect(!head(fields: "Expect: 100-continue\r\nContent-Length: 1", version: "1.0").expectsContinue)
    #expect(!head(fields: "Expect: other\r\nContent-Length: 1").expectsContinue)
}

@Test("an upgrade needs the Upgrade field, its nomination by Connection and HTTP/1.1")
func upgrades() {
    #expect(head(fields: "Upgrade: websocket\r\nConnection: Upgrade").requestsUpgrade)
    #expect(head(fields: "Connection: keep-alive, upgrade\r\nUpgrade: a/1, b").requestsUpgrade)
    #expect(!head(fields: "Upgrade: websocket").requestsUpgrade)
    #expect(!head(fields: "Connection: Upgrade").requestsUpgrade)
    #expect(!head(fields: "Upgrade: websocket\r\nConnection: Upgrade", version: "1.0").requestsUpgrade)
}

@Test("trailers are accepted if TE names them")
func acceptsTrailers() {
    #expect(head(fields: "TE: trailers").acceptsTrailers)
    #expect(head(fields: "TE: gzip;q=0.5, \tTrailers ,x").acceptsTrailers)
    #expect(head(fields: "TE: gzip\r\nTE: trailers").acceptsTrailers)
    #expect(!head(fields: "TE: gzip").acceptsTrailers)
    #expect(!head(fields: "TE: trailersx, xtrailers").acceptsTrailers)
    #expect(!head(fields: "TE:").acceptsTrailers)
    #expect(!head(fields: "Trailer: trailers").acceptsTrailers)
}

@Test("the framing of a request's body is none, a length or chunked")
func framings() {
    #expect(head(fields: "A: b").body == .none)
    #expect(head(fields: "Content-Length: 0").body == .length(0))
    #expect(head(fields: "Content-Length: 0042").body == .length(42))
    #expect(head(fields: "Content-Length: 9223372036854775807").body == .length(UInt64(Int64.max)))
    #expect(head(fields: "Transfer-Encoding: Chunked").body == .chunked)
    #expect(BodyFraming.none.isEmpty)
    #expect(BodyFraming.length(0).isEmpty)
    #expect(!BodyFraming.length(1).isEmpty)
    #expect(!BodyFraming.chunked.isEmpty)
}

@Test("Connection cannot remove the framing fields or Host")
func nominationKeepsFraming() {
    let length = head(fields: "Content-Length: 5\r\nConnection: content-length, host, close")
    #expect(length.body == .length(5))
    #expect(length.host != nil)
    #expect(!length.keepsAlive)
    #expect(length.fields.map(\.isHopByHop) == [true, true, true])
    let chunked = head(fields: "Connection: transfer-encoding\r\nTransfer-Encoding: chunked")
    #expect(chunked.body == .chunked)
}

@Test("each refused request has the status of its rule")
func statuses() {
    let expected: [WireErrorCode: Int] = [
        .requestLineTooLong: 414, .expectationUnknown: 417, .fieldsTooMany: 431, .headTooLarge: 431,
        .trailersTooLarge: 431, .methodTooLong: 501, .transferEncodingUnknown: 501, .versionUnsupported: 505,
    ]
    for code in WireErrorCode.allCases {
        #expect(WireError(code).status == expected[code] ?? 400)
        #expect(WireError(upstream: code).status == 502)
        #expect(WireError(code).detail.contains("RFC "))
        #expect(WireError(code).description == "\(WireError(code).status) \(code.rawValue): \(code.detail)")
    }
    #expect(WireError(.hostMissing) != WireError(upstream: .hostMissing))
}

/// Returns the protocols that a request with these fields offers.
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

/// Returns the rule that an answer with these lines breaks, if the request offers `asked`.
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
