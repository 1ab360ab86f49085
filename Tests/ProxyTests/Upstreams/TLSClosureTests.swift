// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import Proxy
import Testing

@Suite("The end of a connection within TLS")
struct TLSClosureTests {
    @Test("a TLS connection without close_notify does not end a body: anyone on the way could cut it off")
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
            // One whose end is told needs no such word.
            #expect(try proxy.fetch(get("/who")).body.hasPrefix("None TLSv1.3 "))
        }
    }
}
