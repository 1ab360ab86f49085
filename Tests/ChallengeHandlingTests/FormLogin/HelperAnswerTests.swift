// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Answers of login helpers")
struct HelperAnswerTests {
    private func parse(_ text: String) throws(HelperAnswer.Unusable) -> HelperAnswer {
        try HelperAnswer(parsing: Array(text.utf8))
    }

    private func session(_ text: String) throws -> HelperSession {
        guard case .session(let session) = try parse(text) else { throw HelperAnswer.Unusable(reason: "is a failure") }
        return session
    }

    /// The cookie as the portal's host would set it at 1,000 s.
    private func line(_ cookie: String) throws -> String? {
        let session = try session(#"{"cookies":[\#(cookie)]}"#)
        return try #require(session.cookies.first).setCookie(from: "portal.example.com", now: 1_000_000)
    }

    @Test(
        "a helper's cookie becomes the line that the host itself would send",
        arguments: [
            (#"{"name":"sid","value":"a=b, c"}"#, "sid=a=b, c; Path=/"),
            (#"{"name":"sid","value":""}"#, "sid=; Path=/"),
            (#"{"name":"s","value":"1","domain":"Portal.Example.com","path":"/app"}"#, "s=1; Path=/app"),
            (#"{"name":"s","value":"1","domain":".example.com"}"#, "s=1; Path=/; Domain=.example.com"),
            (#"{"name":"s","value":"1","secure":true,"expires":-1}"#, "s=1; Path=/; Secure"),
            (#"{"name":"s","value":"1","expires":1060.9,"httpOnly":true,"size":7}"#, "s=1; Path=/; Max-Age=60"),
            (#"{"name":"s","value":"1","expires":7,"secure":false}"#, "s=1; Path=/; Max-Age=0"),
            (#"{"name":"s","value":"1","expires":1e300}"#, "s=1; Path=/; Max-Age=9223372036854774807"),
            (#"{"name":"s","value":"1","domain":null,"path":null,"expires":null}"#, "s=1; Path=/"),
            (#"{"name":"s","value":"1","domain":"example.com"}"#, nil),
            (#"{"name":"s","value":"1","domain":"id.example.com"}"#, nil),
        ] as [(String, String?)])
    func cookie(json: String, expected: String?) throws {
        #expect(try line(json) == expected)
    }

    @Test(
        "a helper's cookie with a part that could become another is refused",
        arguments: [
            #"{"name":"a b","value":"1"}"#, #"{"name":"","value":"1"}"#, #"{"name":"a=b","value":"1"}"#,
            #"{"name":"a;b","value":"1"}"#, #"{"name":7,"value":"1"}"#, #"{"value":"1"}"#, #"{"name":"a"}"#,
            #"{"name":"a","value":"1; Domain=example.com"}"#, #"{"name":"a","value":"1\r\nX: y"}"#,
            #"{"name":"a","value":"1\u0000"}"#, #"{"name":"a","value":7}"#, #"{"name":"a","value":null}"#,
            #"{"name":"a","value":"1","path":"/;Secure"}"#, #"{"name":"a","value":"1","path":"app"}"#,
            #"{"name":"a","value":"1","domain":".example.com; Path=/"}"#, #"{"name":"a","value":"1","domain":""}"#,
            #"{"name":"a","value":"1","domain":["x"]}"#, #"{"name":"a","value":"1","secure":"yes"}"#,
            #"{"name":"a","value":"1","expires":"soon"}"#, #""a=1""#, "null", "[]",
        ])
    func hostileCookie(json: String) throws {
        #expect(throws: HelperAnswer.Unusable.self) { try session(#"{"cookies":[\#(json)]}"#) }
    }

    @Test(
        "a helper's answer that is not as the protocol says is refused without a word of it",
        arguments: [
            "", "ok", "[]", "7", "{", #"{"cookies":[]} {}"#, "{\"a\":\"\u{0}\"}", #"{"cookies":{}}"#, #"{"fields":[]}"#,
            #"{"fields":{"t":7}}"#, #"{"fields":{"t":"a\r\nX: y"}}"#, #"{"fields":{"t":"ä"}}"#,
            #"{"fields":{"t":" a"}}"#, #"{"fields":{"t":""}}"#, #"{"expires_in":0}"#, #"{"expires_in":-1}"#,
            #"{"expires_in":1.5}"#, #"{"expires_in":"soon"}"#, #"{"error":7}"#, #"{"error":""}"#, #"{"error":{}}"#,
            #"{"cookies":[],"cookies":[]}"#, String(repeating: "[", count: 60_000),
            #"{"fields":{"hunter2":["hunter2"]}}"#,
            #"{"x":""# + String(repeating: "a", count: 65_536) + #""}"#,
            #"{"cookies":["# + Array(repeating: #"{"name":"a","value":"1"}"#, count: 257).joined(separator: ",") + "]}",
        ])
    func unusable(text: String) {
        do {
            _ = try parse(text)
            Issue.record("it was taken: \(text.prefix(80))")
        } catch {
            #expect(!error.reason.contains("hunter2"))
        }
    }

    @Test("a helper's fields and their lifetime are read, and unknown members ignored")
    func fields() throws {
        let read = try session(
            #"{"version":1,"fields":{"token":"t0k en"},"expires_in":"90","cookies":null,"error":null,"new":[{}]}"#)
        #expect(read.fields == ["token": Secret("t0k en")] && read.lifetime == 90 && read.cookies.isEmpty)
        #expect(try session(#"{"expires_in":9999999999}"#).lifetime == 10 * 366 * 86_400)
        #expect(try session("{}") == HelperSession([:]))
    }

    @Test("a helper's error is one that the configuration knows, or another")
    func errors() throws {
        #expect(
            try parse(#"{"error":"wrong-password","message":"no"}"#)
                == .failure(cause: .known(.wrongPassword), message: "no"))
        #expect(try parse(#"{"error":"locked"}"#) == .failure(cause: .known(.locked), message: ""))
        #expect(
            try parse(#"{"error":"Wrong-Password\n","message":7,"cookies":"x"}"#)
                == .failure(cause: .other("Wrong-Password?"), message: ""))
    }
}
