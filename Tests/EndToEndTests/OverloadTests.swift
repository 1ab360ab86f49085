// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import FakeServers
internal import Glibc
internal import Synchronization
internal import TestSupport
import Testing

@Suite("More than there is room for")
struct OverloadTests {
    private static let request = "GET /balance HTTP/1.1\r\nHost: localhost\r\n\r\n"

    @Test("callers beyond limits.waiters are told at once, the others get their answer")
    func waiters() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["limits: { waiters: 3 }"]
        try await withBank(configuration) { bank in
            let login = Signal()
            let told = Count()
            bank.upstream.override { request in
                if request.path.hasSuffix("/preauthorize") { login.wait() }
                return nil
            }
            let answers = try await withThrowingTaskGroup(of: RawResponse?.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        try await offPool {
                            let caller = try bank.connect()
                            caller.send(Self.request)
                            defer { if told.rise() == 4 { login.set() } }
                            return caller.response()
                        }
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }.compactMap(\.self)
            }
            #expect(answers.count == 8 && answers.count { $0.status == 200 } >= 3)
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
            #expect(try await eventually { try await bank.curl("/open/x").status == 200 })
        }
    }

    /// Uses up first the exchanges and then the connections.
    private func fill(_ bank: Bank) async throws {
        let answers = Signal()
        let areHere = Signal()
        let arrived = Count()
        bank.upstream.override { request in
            guard request.path == "/open/late" else { return nil }
            if arrived.rise() == 2 { areHere.set() }
            answers.wait()
            return .text(200, "late")
        }
        let slow = try (0..<2).map { _ in
            let connection = try bank.connect()
            connection.send("GET /open/late HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return connection
        }
        await areHere.wait()
        try await bank.expect("/open/x", status: 503, code: "overloaded")
        let idle = try (0..<2).map { _ in try bank.connect() }
        // The fifth caller, as soon as the fourth has been taken.
        let refused = await eventually {
            guard let fifth = try? bank.connect() else { return false }
            fifth.send(Self.request)
            return fifth.response()?.code == "overloaded"
        }
        #expect(refused)
        answers.set()
        for connection in slow { #expect(await offPool { connection.response() }?.status == 200) }
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

/// A counter of events on any thread.
private final class Count: Sendable {
    private let value = Atomic(0)

    func rise() -> Int { value.wrappingAdd(1, ordering: .relaxed).newValue }
}

@Suite("Thousands of callers")
struct ManyCallersTests {
    private static func script(_ name: String, file: String = #filePath) -> String {
        file.split(separator: "/").dropLast(2).map { "/\($0)" }.joined() + "/Benchmarks/\(name)"
    }

    @Test(
        "5,000 idle connections cost at most 12 KiB each, and a slow loris on 1,000 of them disturbs nobody",
        .enabled(if: mayOpenThousands()))
    func idle() async throws {
        var configuration = BankConfiguration()
        configuration.workers = 2
        configuration.more = ["limits: { callers: 5200 }"]
        try await withBank(configuration) { bank in
            let measured = try await Command.run(
                [
                    "/usr/bin/env", "python3", Self.script("idle"), "--pid", "\(try bank.daemon.child.pid)", "--port",
                    "\(bank.port)", "--path", "/open/x", "--seconds", "3",
                ], in: bank.folder)
            #expect(measured.exit == 0, "\(measured.errors)")
            let figures = JSON(parsing: Array(measured.output.utf8))
            func number(_ path: String...) -> Double {
                switch path.reduce(figures, { $0?[$1] }) {
                case .integer(let value): Double(value)
                case .double(let value): value
                default: .infinity
                }
            }
            #expect(number("callers") == 5000)
            #expect(number("bytes_each") <= 12 * 1024, "\(measured.output)")
            #expect(number("refused_afterwards") == 0)
            // The other tests' load is in both; a stall of the loop would be tenths of a second.
            let timeout = 20 + 5 * number("alone", "median_ms")
            #expect(number("with_loris", "median_ms") <= timeout, "\(measured.output)")
        }
    }

    @Test("callers for whom there is no descriptor are told so, and are served when there is room again")
    func descriptors() async throws {
        try await withBank { bank in
            try await bank.expect("/open/x", status: 200)
            let daemon = try bank.daemon
            // The present number and a few more: enough for callers' connections, but not for others.
            let limit = daemon.descriptorLimit(forMore: 8)
            let limited = try await Command.run(
                ["/usr/bin/prlimit", "--pid", "\(daemon.child.pid)", "--nofile=\(limit):\(limit)"], in: bank.folder)
            #expect(limited.exit == 0, "\(limited.errors)")
            // Descriptors that were in use for a moment during the count serve a few more callers. All ask at once: a
            // caller that sends nothing for a while after connecting is closed (`WorkerLimits.silentTime`).
            let (callers, codes) = try await offPool {
                let callers = try (0..<100).map { _ in try bank.connect() }
                for caller in callers { caller.send("GET /none HTTP/1.1\r\nHost: evil.example\r\n\r\n") }
                return (callers, callers.map { $0.response()?.code })
            }
            #expect(codes.count { $0 == "overloaded" } >= 20, "\(codes)")
            #expect(codes.count { $0 == "host-not-allowed" } >= 6, "\(codes)")
            #expect(codes.allSatisfy { $0 != nil })
            #expect(await daemon.waitForLog("no file descriptor is left"))
            for caller in callers { caller.finish() }
            let isServed = await eventually { (try? RawConnection(port: bank.port)).map(Self.isServed) ?? false }
            #expect(isServed)
        }
    }

    private static func isServed(_ caller: RawConnection) -> Bool {
        caller.send("GET /open/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return caller.response()?.status == 200
    }

    @Test("limits.callers beyond what the process may open is told by check and by the daemon")
    func openFiles() async throws {
        var configuration = BankConfiguration()
        configuration.more = ["limits: { callers: 1048576, exchanges: 1048576 }"]
        try await withBank(configuration) { bank in
            let check = try await bank.countersign("check")
            #expect(check.exit == 0)
            #expect(check.errors.contains("limits.callers: warning: this process may open"))
            let daemon = try bank.daemon
            #expect(await daemon.waitForLog("limits.callers cannot be reached"))
        }
    }
}

/// Returns true if this machine allows thousands of descriptors to the daemon and to the script that calls it.
private func mayOpenThousands() -> Bool {
    var limit = rlimit()
    return unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 && limit.rlim_max >= 16_000
}

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
