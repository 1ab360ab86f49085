// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Curl
import Proxy
import Testing

@Suite("TLS handshakes with upstreams")
struct TLSHandshakeTests {
    /// Returns the answer to a request for `path` of an upstream with TLS.
    private func fetch(
        _ path: String = "/who", from upstream: TLSUpstream, host: String = "localhost",
        _ connections: ConnectionSettings = .trusting()
    ) throws -> (head: String, body: String) {
        let proxy = try TestProxy(.secure(host: host, port: upstream.port, connections: connections))
        return try proxy.fetch(get(path))
    }

    /// Expects a failed handshake: the local reply has these words, and no internals.
    private func expectFault(
        _ words: String, _ answer: (head: String, body: String), location: SourceLocation = #_sourceLocation
    ) {
        #expect(answer.head.hasPrefix("HTTP/1.1 502 "), sourceLocation: location)
        #expect(answer.body.contains("\"code\":\"upstream-tls\""), "\(answer.body)", sourceLocation: location)
        #expect(answer.body.contains(words), "\(answer.body)", sourceLocation: location)
        for internals in ["localhost", "127.0.0.1", "SSL", "error:", "/tmp"] {
            #expect(!answer.body.contains(internals), "\(answer.body)", sourceLocation: location)
        }
    }

    @Test("the right certificate is accepted, over TLS 1.3 if the server has it and 1.2 otherwise")
    func versions() throws {
        #expect(try fetch(from: TLSUpstream()).body == "None TLSv1.3 1")
        #expect(try fetch(from: TLSUpstream(), host: "127.0.0.1").body == "None TLSv1.3 1")
        #expect(try fetch(from: TLSUpstream(version: "1.2")).body == "None TLSv1.2 1")
    }

    @Test(
        "a TLS version below the lowest allowed is refused",
        arguments: [("1.0", TLSVersion.tls12), ("1.1", .tls12), ("1.2", .tls13)])
    func oldVersion(version: String, minimum: TLSVersion) throws {
        let upstream = try TLSUpstream(version: version)
        expectFault("no version of TLS", try fetch(from: upstream, .trusting { $0.tls.minimum = minimum }))
    }

    @Test(
        "the fault of a certificate is reported",
        arguments: [
            ("expired.pem", "server.key", "has expired"),
            ("future.pem", "server.key", "is not valid yet"),
            ("elsewhere.pem", "server.key", "is for another name"),
            ("self.pem", "self.key", "is self-signed"),
            ("stranger.pem", "stranger.key", "an authority that is not trusted here"),
        ])
    func certificate(certificate: String, key: String, words: String) throws {
        expectFault(words, try fetch(from: TLSUpstream(certificate: certificate, key: key)))
    }

    @Test("configured authorities replace the system's")
    func authorities() throws {
        let upstream = try TLSUpstream()
        expectFault("an authority that is not trusted here", try fetch(from: upstream, ConnectionSettings()))
        expectFault("an authority that is not trusted here", try fetch(from: upstream, .trusting("other-ca.pem")))
        expectFault("the CA certificates cannot be used", try fetch(from: upstream, .trusting("server.key")))
    }

    @Test(
        "a peer without TLS, or one that closes during the handshake, is reported as such",
        arguments: [
            ("SSH-2.0-OpenSSH_9.2\r\n", "does not speak TLS"),
            ("HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS"),
            ("", "in the middle of the handshake"),
        ])
    func noTLS(bytes: String, words: String) throws {
        let upstream = try ScriptedUpstream()
        let proxy = try TestProxy(.secure(port: upstream.port, connections: .trusting()))
        let caller = try proxy.connect()
        try caller.send(get())
        let peer = try upstream.accept()
        try peer.send(bytes)
        peer.finish()
        expectFault(words, try caller.message())
    }

    @Test("a reset during the handshake is a TLS failure, and one after it is not")
    func resets() throws {
        let listener = try ScriptedUpstream()
        let proxy = try TestProxy(.secure(port: listener.port, connections: .trusting()))
        let caller = try proxy.connect()
        try caller.send(get())
        let peer = try listener.accept()
        _ = try peer.read(count: 5)
        peer.reset()
        expectFault("in the middle of the handshake", try caller.message())
        let upstream = try TLSUpstream()
        for path in ["/cut", "/reset"] {
            let answer = try fetch(path, from: upstream)
            #expect(answer.body.contains("\"code\":\"upstream-unreachable\""), "\(answer.body)")
        }
    }

    @Test("one matching pin of several is enough, and without a match the handshake fails")
    func pins() throws {
        let upstream = try TLSUpstream()
        let other = "sha256//" + String(repeating: "A", count: 43) + "="
        #expect(
            try fetch(from: upstream, .trusting { $0.tls.pins = [other, Certificates.pin] }).body.hasPrefix("None"))
        expectFault(
            "its public key matches no pin", try fetch(from: upstream, .trusting { $0.tls.pins = [other, other] }))
    }

    @Test("a client certificate is presented, and its lack or refusal is reported", arguments: ["1.2", nil])
    func clientCertificate(version: String?) throws {
        let upstream = try TLSUpstream(clients: "ca.pem", version: version)
        let answer = try fetch(from: upstream, .trusting { $0.show("client") })
        #expect(answer.body.hasPrefix("client TLS"))
        // Before TLS 1.3 the server's alert has no more than a general refusal.
        expectFault("wants a client certificate", try fetch(from: upstream))
        expectFault(
            "does not accept the client certificate", try fetch(from: upstream, .trusting { $0.show("stranger") }))
        let expired = try fetch(
            from: upstream,
            .trusting {
                $0.show("expired")
                $0.key = Certificates.blob("server.key")
            })
        expectFault("the client certificate has expired", expired)
        let mixed = try fetch(
            from: upstream,
            .trusting {
                $0.show("client")
                $0.key = Certificates.blob("stranger.key")
            })
        expectFault("do not belong together", mixed)
    }
}

extension ConnectionSettings {
    /// Presents that certificate of `Certificates`.
    fileprivate mutating func show(_ name: String) {
        certificate = Certificates.blob("\(name).pem")
        key = Certificates.blob("\(name).key")
    }
}

@Suite("The end of a connection within TLS")
struct TLSClosureTests {
    @Test("the end of a TLS connection without close_notify does not end a body, since an attacker could cause it")
    func closure() throws {
        let upstream = try TLSUpstream()
        let proxy = try TestProxy(.secure(port: upstream.port, connections: .trusting()))
        for _ in 0..<2 {
            let whole = try proxy.connect()
            try whole.send(get("/until-close"))
            _ = try whole.head()
            try whole.expect("4\r\nhalf\r\n0\r\n\r\n")
            let cut = try proxy.connect()
            try cut.send(get("/truncated"))
            #expect(try cut.head().hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(try cut.readAll().map { $0 == "4\r\nhalf\r\n" } ?? true)
            let short = try proxy.connect()
            try short.send(get("/cut-body"))
            _ = try short.head()
            #expect(try short.readAll().map { $0 == "half" } ?? true)
            // An answer whose end is known does not need the TLS closure.
            #expect(try proxy.fetch(get("/who")).body.hasPrefix("None TLSv1.3 "))
        }
    }
}
