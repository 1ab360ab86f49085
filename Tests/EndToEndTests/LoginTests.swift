// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("A caller without a line of login code")
struct LoginTests {
    @Test("gets the balance, and the second request costs no second login")
    func balance() async throws {
        try await withBank { bank in
            for _ in 0..<2 {
                let answer = try await bank.curl("/balance")
                #expect(answer.status == 200)
                #expect(answer.json?["balance"] == "$1,438.20")
                #expect(answer.field("www-authenticate") == nil)
            }
            #expect(bank.record.answers["PinCodeAttempts"] == [["pin": "1234"]])
            #expect(bank.record.registrations == 1)
            // The resource's first answer names no scope, its second does.
            #expect(bank.record.tokens == ["RegisteredClient", "RegisteredClient accessRestricted"])
        }
    }

    @Test("has its request arrive without what belongs to the proxy, and the answer without the token")
    func nothingLeaks() async throws {
        try await withBank { bank in
            let answer = try await bank.curl("/echo", "-H", "Authorization: Bearer mine")
            #expect(answer.status == 200)
            let members = answer.json?["fields"].map(fields) ?? [:]
            // The caller's own Authorization is replaced; the upstream saw one, and it opened the resource.
            #expect(members["authorization"] == "<present>")
            #expect(members["host"] == "127.0.0.1:\(bank.upstream.port)")
            #expect(members["via"]?.contains("countersign") == true)
        }
    }

    @Test(
        "posts a body that arrives once and byte for byte, also when the first answer is a challenge",
        arguments: [0, 1, 5_000, 65_536], [false, true])
    func post(size: Int, isChunked: Bool) async throws {
        try await withBank { bank in
            let body = pattern(size)
            let file = bank.folder.write(body, to: "body")
            let framing = isChunked ? ["-H", "Transfer-Encoding: chunked"] : []
            for number in 1...2 {
                let answer = try await Curl.run(
                    framing + ["-H", "Content-Type: application/octet-stream", "--data-binary", "@\(file)"]
                        + [bank.url("/transfer?number=\(number)")], in: bank.folder)
                #expect(answer.status == 201)
                #expect(answer.json?["sha256"]?.string == sha256(body))
            }
            #expect(bank.record.hits.map(\.digest) == [sha256(body), sha256(body)])
            #expect(bank.record.hits.map(\.size) == [size, size])
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("posts a body longer than what is kept: the login comes before it")
    func longBody() async throws {
        try await withBank { bank in
            let body = pattern(300_000)
            let file = bank.folder.write(body, to: "body")
            let answer = try await bank.curl("/transfer", "--data-binary", "@\(file)")
            // The client could not know whether a login was needed; if one was, the caller must send the request again.
            #expect(answer.status == 201 || answer.code == "body-not-replayable")
            let again = try await bank.curl("/transfer", "--data-binary", "@\(file)")
            #expect(again.status == 201)
            #expect(bank.record.hits.allSatisfy { $0.digest == sha256(body) })
            #expect(bank.record.hits.count == (answer.status == 201 ? 2 : 1))
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("is answered as it came what nobody can answer, and what is open")
    func passes() async throws {
        try await withBank { bank in
            let open = try await bank.curl("/open/hello")
            #expect(open.status == 200)
            let basic = try await bank.curl("/basic/")
            #expect(basic.status == 401)
            #expect(basic.field("www-authenticate")?.hasPrefix("Basic realm=") == true)
            #expect(bank.record.registrations == 0)
        }
    }
}

/// Returns `count` bytes in which no two places look alike.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 / 251) }
}

/// Returns the fields in an echo's answer, names in lower case.
func fields(_ json: JSON) -> [String: String] {
    guard case .array(let elements) = json else { return [:] }
    let members = elements.compactMap { $0.members?.first }
    return Dictionary(members.map { ($0.name.lowercased(), $0.value.string ?? "") }) { "\($0), \($1)" }
}

@Suite("A login whose outcome nobody knows")
struct UnknownOutcomeTests {
    /// A failure at an endpoint of the login server.
    struct Trouble: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var effect: Fault.Effect
    }

    private static let troubles = [
        Trouble(testDescription: "503", effect: .unavailable(503)),
        Trouble(testDescription: "500", effect: .unavailable(500)),
        Trouble(testDescription: "a broken JSON body", effect: .garbage),
        Trouble(testDescription: "a lost connection", effect: .cut(after: 0)),
        Trouble(testDescription: "a reset in the middle of the answer", effect: .cut(after: 60, reset: true)),
    ]

    @Test(
        "is login-failed, latches nothing, and is made up for after a pause",
        arguments: troubles, [Endpoint.preauthorize, .token])
    func recovers(trouble: Trouble, endpoint: Endpoint) async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(trouble.effect, at: endpoint, times: 1))
            let answer = try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(answer.json?["upstream"] == "bank")
            #expect(answer.field("www-authenticate") == nil)
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is the same where the client cannot be registered")
    func registration() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.unavailable(), at: .registration, times: 1))
            try await bank.expect("/balance", status: 502, code: "login-failed")
            try await bank.expectRecovery(answers: 1)
            #expect(bank.record.registrations == 1)
        }
    }

    @Test("keeps the answer's outcome unknown where the connection is lost after it was sent")
    func lostAfterAnswer() async throws {
        try await withBank { bank in
            // Of each scope's login: the first preauthorize has no answer, the second carries the PIN.
            bank.upstream.faults.add(Fault(.cut(after: 0), at: .preauthorize, times: 1, skip: 2))
            try await bank.expect("/balance", status: 502, code: "login-failed")
            #expect(bank.pinAnswers == 1)
            // The server had accepted the answer and therefore does not ask again.
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is not tried again before the time that the server names")
    func retryAfter() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.unavailable(429, retryAfter: 600), at: .preauthorize, times: 1))
            let answer = try await bank.expect("/balance", status: 502, code: "login-failed")
            let wait = try #require(answer.field("retry-after").flatMap { Int($0) })
            #expect((300...600).contains(wait))
            let asked = bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize")
            // Callers are answered at once meanwhile, and the server is left alone.
            for _ in 0..<3 { try await bank.expect("/balance", code: "login-failed") }
            #expect(bank.record.count("POST", "/mfp/api/preauth/v1/preauthorize") == asked)
            // An operator need not wait so long.
            #expect(try await bank.admin("/sessions/drop", "-X", "POST").status == 200)
            try await bank.expectRecovery(answers: 1)
        }
    }

    @Test("is login-timeout where the server does not answer in time")
    func timeout() async throws {
        var configuration = BankConfiguration()
        configuration.bank = ["timeouts: { login: 3s }"]
        try await withBank(configuration) { bank in
            bank.upstream.faults.add(Fault(.hang, at: .preauthorize, times: 1))
            let answer = try await bank.expect("/balance", status: 504, code: "login-timeout")
            #expect(answer.json?["upstream"] == "bank")
            // Ends the login that still hangs there.
            await offPool { bank.upstream.stop() }
            try bank.upstream.start()
            try await bank.expectRecovery(answers: 1)
        }
    }
}

extension Bank {
    /// Waits until requests succeed again, after `answers` answers in all, without a closed latch.
    fileprivate func expectRecovery(answers: Int, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        let status = try await admin("/status")
        #expect(status.json?["latches"] == .array([]), sourceLocation: sourceLocation)
        let isServed = try await eventually {
            let answer = try await curl("/balance")
            if answer.status == 200 { return true }
            #expect(["login-failed", "login-timeout"].contains(answer.code), sourceLocation: sourceLocation)
            return false
        }
        #expect(isServed, sourceLocation: sourceLocation)
        #expect(pinAnswers == answers, sourceLocation: sourceLocation)
    }
}
