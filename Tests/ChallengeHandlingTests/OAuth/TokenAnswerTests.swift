// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Secrets
import Testing

@testable import ChallengeHandling

@Suite("Answers of token endpoints")
struct TokenAnswerTests {
    @Test(
        "a token's lifetime is a number or the text of one, and bounded",
        arguments: [
            ("", nil), (#","expires_in":null"#, nil), (#","expires_in":60"#, 60), (#","expires_in":"60""#, 60),
            (#","expires_in":59.9"#, 59), (#","expires_in":"59.9""#, 59), (#","expires_in":1e30"#, 316_224_000),
            (#","expires_in":9223372036854775807"#, 316_224_000),
        ] as [(String, Int64?)])
    func lives(text: String, seconds: Int64?) throws {
        let token = try TokenAnswer(Array(#"{"access_token":"t","token_type":"bEARER"\#(text)}"#.utf8)).token()
        #expect(token.value == Secret("t") && token.seconds == seconds)
        #expect(token.expiresAt(sentAt: 1000) == seconds.map { 1000 + $0 * 1000 })
    }

    @Test(
        "an unusable token answer is refused",
        arguments: [
            "", "<html>", "[]", "{}", #"{"access_token":""}"#, #"{"access_token":7}"#, #"{"access_token":"a b"}"#,
            #"{"access_token":"a\r\nX: y"}"#, #"{"access_token":"\u0000"}"#, #"{"access_token":"é"}"#,
            #"{"access_token":"t","token_type":"mac"}"#, #"{"access_token":"t","token_type":1}"#,
            #"{"access_token":"t","expires_in":0}"#, #"{"access_token":"t","expires_in":-1}"#,
            #"{"access_token":"t","expires_in":"soon"}"#, #"{"access_token":"t","expires_in":"nan"}"#,
            #"{"access_token":"t","expires_in":{}}"#, #"{"access_token":"t","expires_in":true}"#,
            #"{"token":"t"}"#,
        ])
    func refused(body: String) {
        #expect(throws: TokenAnswer.Unusable.self) { try TokenAnswer(Array(body.utf8)).token() }
    }

    @Test("a token that is longer than a field may be is refused")
    func long() {
        let body = #"{"access_token":"\#(String(repeating: "t", count: 32 * 1024 + 1))"}"#
        #expect(throws: TokenAnswer.Unusable.self) { try TokenAnswer(Array(body.utf8)).token() }
    }
}
