// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("More than there is room for")
struct OverloadTests {
    private static let request = "GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @Test("callers beyond limits.waiters are told at once, the others get their answer")
    func waiters() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["limits: { waiters: 3 }"]
        try await withBank(configuration) { bank in
            bank.upstream.faults.add(Fault(.delay(.seconds(1)), at: .preauthorize, times: 1))
            let answers = try await bank.storm(connections: 8, requests: 1) { _ in Self.request }
            #expect(answers.count { $0.status == 200 } >= 3)
            let refused = answers.filter { $0.status != 200 }
            #expect(refused.count >= 4)
            #expect(refused.allSatisfy { $0.status == 503 && $0.code == "overloaded" })
            #expect(refused.allSatisfy { $0.field("retry-after") != nil })
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("exchanges and callers beyond their limits are 503, and there is room again afterwards")
    func exchanges() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["limits: { exchanges: 2, callers: 4 }"]
        try await withBank(configuration) { bank in
            try await fill(bank)
            // The connections that filled it are closed, which takes the daemon a moment.
            let end = ContinuousClock.now + .seconds(5)
            var status = 0
            while status != 200, ContinuousClock.now < end { status = try await bank.curl("/open/x").status }
            #expect(status == 200)
        }
    }

    /// Uses up first the exchanges and then the connections.
    private func fill(_ bank: Bank) async throws {
        let slow = try (0..<2).map { _ in
            let connection = try bank.connect()
            connection.send("GET /open/stream?lines=2&pause=1500 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection
        }
        #expect(await bank.upstream.recorder.waitUntil { $0.hits.count == 2 })
        try await bank.expect("/open/x", status: 503, code: "overloaded")
        let idle = try (0..<2).map { _ in try bank.connect() }
        // The fifth caller, as soon as the fourth has been taken.
        let refused = await eventually {
            guard let fifth = try? bank.connect() else { return false }
            fifth.send(Self.request)
            return fifth.response()?.code == "overloaded"
        }
        #expect(refused)
        for connection in slow {
            #expect(await offPool { connection.receive(until: "0\r\n\r\n") }.contains("data: tick 2"))
        }
        withExtendedLifetime(idle) {}
    }

    @Test("a caller who leaves while the login runs takes nobody else's answer with it")
    func leaves() async throws {
        try await withBank { bank in
            bank.upstream.faults.add(Fault(.delay(.milliseconds(700)), at: .preauthorize, times: 1))
            let leader = try bank.connect()
            leader.send(Self.request)
            #expect(
                await bank.upstream.recorder.waitUntil { $0.maxConcurrent["/mfp/api/preauth/v1/preauthorize"] == 1 })
            async let others = bank.storm(connections: 5, requests: 1) { _ in Self.request }
            leader.finish()
            let answers = try await others
            #expect(answers.count == 5)
            #expect(answers.allSatisfy { $0.status == 200 })
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("a body that waits for 100 Continue is asked for, and survives the login")
    func expectContinue() async throws {
        try await withBank { bank in
            let file = bank.folder.write(pattern(20_000), to: "body")
            let answer = try await bank.expect(
                "/transfer", "-H", "Expect: 100-continue", "--expect100-timeout", "10", "--data-binary", "@\(file)",
                status: 201)
            #expect(answer.json?["sha256"]?.string == sha256(pattern(20_000)))
            #expect(bank.record.hits.count == 1)
        }
    }
}
