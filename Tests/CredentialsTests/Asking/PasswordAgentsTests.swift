// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Secrets
import System
import TestSupport
import Testing

@testable import Credentials

@Suite(
    "Password agents", .enabled(if: unsafe access("/lib/systemd/systemd-reply-password", X_OK) == 0))
struct PasswordAgentsTests {
    private let directory: TemporaryDirectory
    private var agents: PasswordAgents { PasswordAgents(directories: [directory.path], limit: .seconds(600)) }

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// Asks on a thread of its own.
    private func ask(_ agents: PasswordAgents) async -> Result<Secret, AskFailure> {
        do throws(ThreadError) {
            return try await onOwnThread(startThread) {
                Result { () throws(AskFailure) in try agents.ask("the pin of bank-pin", id: "countersign:bank-pin:pin")
                }
            }
        } catch {
            return .failure(AskFailure(reason: "\(error)"))
        }
    }

    /// The lines of the question that stands in the directory.
    private func question() async throws -> [String] {
        #expect(await eventually { directory.names.contains { $0.hasPrefix("ask.") } })
        let name = try #require(directory.names.first { $0.hasPrefix("ask.") })
        return String(decoding: try directory.read(name), as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Answers with systemd's own program.
    private func reply(_ sign: String, _ answer: String) async throws {
        let lines = try await question()
        let socket = try #require(lines.first { $0.hasPrefix("Socket=") }).dropFirst(7)
        let done = try await onOwnThread(startThread) {
            Result {
                try HelperProcess(
                    command: ["/lib/systemd/systemd-reply-password", sign, String(socket)], environment: [:]
                )
                .run(Array("\(answer)\n".utf8), timeout: .seconds(180))
            }
        }.get()
        #expect(done.exitCode == 0)
    }

    @Test("a password agent returns the typed answer, and the question is removed")
    func answered() async throws {
        async let answer = ask(agents)
        try await reply("1", "73914682")
        #expect(try await answer.get() == Secret("73914682"))
        #expect(directory.names.isEmpty)
    }

    @Test("the question for password agents states its origin and is readable by every user")
    func message() async throws {
        async let answer = ask(agents)
        let lines = try await question()
        #expect(lines.contains("Message=Please enter the pin of bank-pin:"))
        #expect(lines.contains("PID=\(getpid())"))
        let name = try #require(directory.names.first { $0.hasPrefix("ask.") })
        #expect(try directory.mode(of: name) == 0o644)
        let socket = try #require(directory.names.first { $0.hasPrefix("sck.") })
        #expect(try directory.mode(of: socket) == 0o600)
        try await reply("1", "x")
        _ = await answer
    }

    @Test("a password agent can withdraw the question")
    func withdrawn() async throws {
        async let answer = ask(agents)
        try await reply("0", "")
        #expect(await answer == .failure(AskFailure(reason: "the prompt was withdrawn")))
        #expect(directory.names.isEmpty)
    }

    @Test("a question without a password agent ends after its time limit")
    func timedOut() async {
        let answer = await ask(PasswordAgents(directories: [directory.path], limit: .zero))
        #expect(answer == .failure(AskFailure(reason: "the prompt was not answered in time")))
        #expect(directory.names.isEmpty)
    }

    @Test("password agents without a directory cannot be asked")
    func noDirectory() async {
        let answer = await ask(PasswordAgents(directories: ["/no/such/place"]))
        guard case .failure(let failure) = answer else {
            Issue.record("somebody answered")
            return
        }
        #expect(failure.reason.contains("/no/such/place"))
    }

    @Test("a question for password agents that a killed process has left is removed")
    func leftovers() async throws {
        do { _ = try AgentSocket(at: directory.file("sck.countersign-1")) }
        try directory.write("[Ask]\n", to: "ask.countersign-1")
        try directory.write("[Ask]\n", to: "ask.of-somebody-else")
        _ = await ask(PasswordAgents(directories: [directory.path], limit: .zero))
        #expect(directory.names == ["ask.of-somebody-else"])
    }
}
