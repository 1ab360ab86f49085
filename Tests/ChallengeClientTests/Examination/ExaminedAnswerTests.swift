// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import HTTPTypes
import HTTPWire
import Testing

@testable import ChallengeClient

@Suite("Answers that may be challenges")
struct ExaminedAnswerTests {
    private func examine(_ head: String) throws -> ExaminedAnswer? {
        let bytes = ByteQueue(text: head)
        var scanner = ResponseHeadScanner()
        try bytes.withSpan { (bytes) throws(WireError) in try scanner.scan(bytes) }
        return ExaminedAnswer(scanner.head, in: bytes)
    }

    @Test("status and fields are taken", arguments: [401, 403, 409])
    func taken(status: Int) throws {
        let answer = try #require(
            try examine("HTTP/1.1 \(status) X\r\nWWW-Authenticate: Bearer\r\nX-A: 1\r\nx-a: 2\r\n\r\n"))
        #expect(answer.status == status)
        #expect(answer.fields[.wwwAuthenticate] == "Bearer")
        #expect(answer.fields[values: try #require(HTTPField.Name("X-A"))] == ["1", "2"])
    }

    @Test(
        "HTTP/2 has no minor version", arguments: ["HTTP/2 401 \r\n\r\n", "HTTP/2 401\r\n\r\n", "HTTP/1.1 401\r\n\r\n"])
    func versions(head: String) throws {
        #expect(try examine(head)?.status == 401)
    }

    @Test(
        "what has the status of no challenge is not looked at",
        arguments: ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 302 Found\r\n\r\n", "HTTP/1.1 404 X\r\n\r\n"])
    func notTaken(head: String) throws {
        #expect(try examine(head) == nil)
    }

    private static let bearer = "Bearer error=\"invalid_token\", realm=\"bank\""

    @Test("each trigger finds its own challenges only")
    func triggers() throws {
        let missing = try #require(try examine("HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer realm=\"bank\"\r\n\r\n"))
        let invalid = try #require(try examine("HTTP/1.1 401 X\r\nWWW-Authenticate: \(Self.bearer)\r\n\r\n"))
        let conflict = try #require(try examine("HTTP/1.1 409 X\r\nMFP-Conflict: yes\r\n\r\n"))
        let basic = try #require(try examine("HTTP/1.1 401 X\r\nWWW-Authenticate: Basic realm=\"bank\"\r\n\r\n"))
        typealias Trigger = StandingLogin.Trigger
        for answer in [missing, invalid, conflict, basic] {
            #expect(Trigger.ahead.examine(answer) == .notAChallenge)
        }
        #expect(Trigger.mobileFirst.examine(missing) == .tokenMissing)
        #expect(Trigger.mobileFirst.examine(invalid) == .tokenInvalid)
        #expect(Trigger.mobileFirst.examine(conflict) == .conflict)
        #expect(Trigger.mobileFirst.examine(basic) == .notAChallenge)
        #expect(Trigger.bearer(realm: nil).examine(missing) == .tokenMissing)
        #expect(Trigger.bearer(realm: "bank").examine(invalid) == .tokenInvalid)
        #expect(Trigger.bearer(realm: "other").examine(invalid) == .notAChallenge)
        #expect(Trigger.bearer(realm: nil).examine(conflict) == .notAChallenge)
        #expect(Trigger.bearer(realm: nil).examine(basic) == .notAChallenge)
    }
}
