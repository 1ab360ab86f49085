// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeClient
import ChallengeHandling
import Proxy
import Testing

@Suite("Answers that are made to be read for long")
struct NestedAnswerTests {
    @Test(
        "an answer of 60 KB, however it is nested, goes to its caller as it came, and keeps no other caller waiting",
        arguments: [
            String(repeating: "[", count: 500) + Array(repeating: "[]", count: 19_000).joined(separator: ",")
                + String(repeating: "]", count: 500),
            String(repeating: "[", count: 30_000), String(repeating: #"{"a":"#, count: 10_000),
            "\"" + String(repeating: "\\u0300\\u0316", count: 4_900) + "\"",
            "\"" + String(repeating: "\u{300}\u{316}", count: 14_000) + "\"",
        ])
    func nested(value: String) throws {
        let body = #"{"challenges":{"PinCheck":"# + value + "}}"
        let upstream = try AnsweringUpstream { head, _ in
            head.contains(" /nested ")
                ? answer("401 Unauthorized", body, "Content-Type: application/json\r\n") : answer("200 OK", "in")
        }
        let login = Authenticator.scripted(
            port: upstream.port, trigger: .detected(ResourceCheckDetector(checks: ["PinCheck"]))
        ) { _, _, _ throws(LoginFailure) in throw .failed }
        let proxy = try TestProxy(.bank(port: upstream.port, logins: [login]))
        let callers = try (0..<4).map { _ in try proxy.connect() }
        for caller in callers { try caller.send(get("/nested")) }
        let other = try proxy.connect()
        try other.send(get("/other"))
        // Each of these waits ten seconds at most; one such answer took minutes.
        #expect(try other.message().body == "in")
        for caller in callers {
            let (head, received) = try caller.message()
            #expect(head.hasPrefix("HTTP/1.1 401 ") && received == body)
        }
    }
}
