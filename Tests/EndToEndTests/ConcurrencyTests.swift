// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
import Testing

@Suite("Many callers at once")
struct ConcurrencyTests {
    @Test("200 first requests over 50 connections meet one login and get 200 right answers")
    func singleFlight() async throws {
        var configuration = BankConfiguration()
        configuration.workers = 2
        try await withBank(configuration) { bank in
            let answers = try await bank.storm(connections: 50, requests: 4) { _ in
                "GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n"
            }
            #expect(answers.count == 200)
            #expect(answers.allSatisfy { $0.status == 200 && $0.text.contains("$1,438.20") })
            #expect(bank.pinAnswers == 1)
            #expect(bank.record.registrations == 1)
            // A token for the resource's first answer, which names no scope, and one for the scope that it then names.
            #expect(bank.record.tokens == ["RegisteredClient", "RegisteredClient accessRestricted"])
            #expect(bank.record.hits.count == 200)
        }
    }

    @Test("a failure is shared: 40 first requests with a wrong PIN cost one answer, and each is told why")
    func sharedFailure() async throws {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.environment["COUNTERSIGN_BANK_PIN__PIN"] = "9999"
        try await withBank(configuration) { bank in
            let answers = try await bank.storm(connections: 20, requests: 2) { _ in
                "GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n"
            }
            #expect(answers.count == 40)
            #expect(answers.allSatisfy { ["login-rejected", "login-latched"].contains($0.code) })
            #expect(answers.allSatisfy { [502, 503].contains($0.status) })
            #expect(bank.pinAnswers == 1)
        }
    }

    @Test("50 posts under way when the tokens are revoked all arrive, each once")
    func revokedUnderTraffic() async throws {
        var configuration = BankConfiguration()
        configuration.workers = 2
        try await withBank(configuration) { bank in
            try await bank.expect("/balance", status: 200)
            bank.upstream.mobileFirst.revokeTokens()
            let answers = try await bank.storm(connections: 50, requests: 1) { number in
                let body = #"{"to":"savings","amount":\#(number)}"#
                return "POST /transfer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
            }
            #expect(answers.count == 50)
            #expect(answers.map(\.status) == Array(repeating: 201, count: 50), "\(answers.first?.text ?? "")")
            let hits = bank.record.hits.filter { $0.method == "POST" }
            #expect(hits.count == 50)
            #expect(Set(hits.map(\.digest)).count == 50)
            // The check still holds, so new tokens cost no second answer; and one login of each scope fetched them.
            #expect(bank.pinAnswers == 1)
            #expect(bank.record.tokens.count == 4)
        }
    }
}

extension Bank {
    /// Sends requests over several connections at once, one after the other on each; returns the responses.
    func storm(
        connections: Int, requests: Int, _ request: @escaping @Sendable (_ number: Int) -> String
    ) async throws -> [RawResponse] {
        try await withThrowingTaskGroup(of: [RawResponse].self) { group in
            for number in 0..<connections {
                group.addTask {
                    try await offPool {
                        let connection = try self.connect()
                        return (0..<requests).compactMap { index in
                            connection.send(request(number * requests + index))
                            return connection.response()
                        }
                    }
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }
}
