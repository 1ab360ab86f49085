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

/// The names of the lines behind Host that may be forwarded.
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
