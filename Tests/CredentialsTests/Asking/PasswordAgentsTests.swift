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

    /// Returns the lines of the question in the directory.
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

@Suite("Question file for password agents")
struct AskFileTests {
    @Test("a question file has the specified format, with one line per value")
    func text() {
        let file = AskFile(
            message: "The pin\nSocket=/evil", id: "countersign:a:pin", socket: "/run/x/sck.1", process: 7, notAfter: 42)
        let lines = file.text.split(separator: "\n").map(String.init)
        #expect(lines.first == "[Ask]")
        #expect(lines.contains("PID=7"))
        #expect(lines.contains("NotAfter=42"))
        #expect(lines.contains("AcceptCached=0"))
        #expect(lines.contains("Message=The pinSocket=/evil"))
        #expect(lines.filter { $0.hasPrefix("Socket=") } == ["Socket=/run/x/sck.1"])
    }

    @Test(
        "the answer of a password agent follows a plus, up to the first zero byte",
        arguments: ["+1234", "+1234\u{0}", "+1234\u{0}another\u{0}"])
    func answer(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .answer(Secret("1234")))
    }

    @Test(
        "a minus or an empty answer of a password agent withdraws the question",
        arguments: ["-", "-why", "+", "+\u{0}"])
    func withdrawn(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == .withdrawn)
    }

    @Test("a datagram of a password agent without plus or minus is ignored", arguments: ["", "1234", " +1234"])
    func nonsense(datagram: String) {
        #expect(AskFile.reply(in: Array(datagram.utf8)) == nil)
    }
}
