// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import ChallengeHandling
import Glibc
import Secrets
import Synchronization
import System
import Testing

@testable import Credentials

@Suite("Login helpers")
struct LoginHelperTests {
    private static let question = LoginHelperQuestion(
        text: Secret("{\"fields\":{\"password\":\"pass\\\"word\"}}\n"), secrets: [Secret("pass\"word")])
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func run(
        _ script: String, timeout: Duration = .seconds(180), environment: [String: String] = ["PATH": "/usr/bin:/bin"],
        onErrorOutput: @escaping @Sendable (String, String) -> Void = { _, _ in }
    ) async throws(LoginHelperError) -> String {
        let helper = LoginHelper(.program(["/bin/sh", "-c", script]), timeout: timeout)
        return try await SystemLoginHelpers(environment: environment, onErrorOutput: onErrorOutput)
            .answer(of: helper, to: Self.question).revealText()
    }

    private func failure(_ script: String, timeout: Duration = .seconds(180)) async -> LoginHelperError? {
        do throws(LoginHelperError) {
            _ = try await run(script, timeout: timeout)
            return nil
        } catch {
            return error
        }
    }

    @Test("a login helper reads the question and writes the answer")
    func answers() async throws {
        #expect(try await run("cat; echo more") == Self.question.text.revealText() + "more\n")
    }

    @Test("a login helper gets a clean environment, and the question neither there nor in its arguments")
    func isolation() async throws {
        let environment = [
            "PATH": "/usr/bin:/bin", "LANG": "C", "HOME": "/root", "COUNTERSIGN_ANN__PASSWORD": "pass\"word",
            "AWS_KEY": "k",
        ]
        let seen = try await run(
            "cat /proc/self/environ /proc/$$/cmdline | tr '\\0' '\\n'; env", environment: environment)
        #expect(seen.contains("LANG=C") && seen.contains("PATH="))
        for word in ["word", "COUNTERSIGN", "AWS", "HOME"] { #expect(!seen.contains(word), "\(seen)") }
    }

    @Test("a login helper that fails is named with its status in the log, and not to callers")
    func fails() async {
        let failed = await failure("echo '{}'; exit 3")
        #expect(failed?.reason.contains("/bin/sh") == true && failed?.reason.contains("exit code 3") == true)
        #expect(failed?.publicReason == "it failed (exit code 3)" && failed?.isTimeout == false)
        #expect(await failure("kill -9 $$")?.reason.contains("signal") == true)
        #expect(await failure("yes")?.reason.contains("more than 64 KiB") == true)
    }

    @Test("a login helper's standard error is one line in the log, without the credential and the session")
    func errorOutput() async throws {
        let lines = Mutex<[String]>([])
        let script = #"""
            echo '{"cookies":[{"name":"sid","value":"c00kie"}],"fields":{"token":"t0ken"}}'
            printf 'typed pass"word and pass\\"word and pass%%22word, got c00kie and t0ken\nmore\n' >&2
            """#
        _ = try await run(script, onErrorOutput: { _, line in lines.withLock { $0.append(line) } })
        let expected =
            "typed <redacted> and <redacted> and <redacted>, got <redacted> and <redacted>"
        #expect(lines.withLock(\.self) == [expected])
    }

    @Test("a login helper that exceeds its time is killed with its children")
    func timesOut() async throws {
        let reader = try fifo()
        let failed = await failure("sleep 600 > \(directory.file("alive")) & sleep 600", timeout: .seconds(1))
        #expect(failed?.isTimeout == true)
        expectEnd(of: reader)
    }

    @Test("a login helper whose login is cancelled is killed with its children")
    func cancelled() async throws {
        let reader = try fifo()
        let started = directory.file("started")
        try #require(unsafe mkfifo(started, 0o600) == 0)
        let start = try Descriptor(opening: started, O_RDWR)
        // The child itself reports that it holds the pipe open.
        let child = "{ echo x > \(started); exec sleep 600; } > \(directory.file("alive"))"
        let task = Task { await failure("\(child) & sleep 600") }
        await read(start.number, 2)
        task.cancel()
        #expect(await task.value?.isTimeout == true)
        expectEnd(of: reader)
    }

    @Test("no more login helpers than the limit run at once, and a wait for a turn ends with the time limit")
    func limit() async throws {
        let helpers = SystemLoginHelpers(environment: ["PATH": "/usr/bin:/bin"])
        let (started, gate) = (directory.file("started"), directory.file("gate"))
        for path in [started, gate] { try #require(unsafe mkfifo(path, 0o600) == 0) }
        let reader = try Descriptor(opening: started, O_RDWR)
        // A reader of the gate waits for its writer.
        let holding = LoginHelper(.program(["/bin/sh", "-c", "echo x > \(started); read line < \(gate)"]))
        await withThrowingTaskGroup { group in
            for _ in 0..<SystemLoginHelpers.concurrencyLimit {
                group.addTask { _ = try await helpers.answer(of: holding, to: Self.question) }
            }
            await read(reader.number, 2 * SystemLoginHelpers.concurrencyLimit)
            let late = LoginHelper(.program(["/bin/true"]), timeout: .milliseconds(1))
            await #expect(throws: LoginHelperError.self) { try await helpers.answer(of: late, to: Self.question) }
            group.cancelAll()
            while let result = await group.nextResult() {
                if case .success = result { Issue.record("a helper ended by itself") }
            }
        }
        let next = LoginHelper(.program(["/bin/echo", "next"]))
        #expect(try await helpers.answer(of: next, to: Self.question) == Secret("next\n"))
    }

    /// Returns a named pipe that a helper's children hold open during their lifetime.
    private func fifo() throws -> Descriptor {
        let path = directory.file("alive")
        try #require(unsafe mkfifo(path, 0o600) == 0)
        return try Descriptor(opening: path, O_RDONLY | O_NONBLOCK)
    }

    /// Reads `count` bytes without blocking a thread of the task pool.
    private func read(_ descriptor: Int32, _ count: Int) async {
        _ = try? await onOwnThread {
            var left = count
            while left > 0, let bytes = try? DescriptorIO.read(from: descriptor, atMost: left) { left -= bytes.count }
        }
    }

    private func expectEnd(of reader: borrowing Descriptor) {
        var waiting = pollfd(fd: reader.number, events: Int16(POLLIN), revents: 0)
        #expect(unsafe poll(&waiting, 1, 180_000) == 1)
        #expect(Int32(waiting.revents) & POLLHUP != 0)
    }
}

@Suite("Login helpers at a socket")
struct HelperSocketTests {
    private static let question = LoginHelperQuestion(text: Secret("question\n"), secrets: [])
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Runs a helper behind a socket that answers each question with `respond`, and returns what the daemon gets.
    private func ask(
        timeout: Duration = .seconds(180),
        _ respond: @escaping @Sendable (_ question: String, _ connection: Int32) -> Void
    ) async throws -> String {
        let path = directory.file("socket")
        let listener = Descriptor(owning: try Sockets.makeStream(AF_UNIX))
        try #require(SocketAddress(unixPath: path)).bind(listener.number)
        try #require(listen(listener.number, 4) == 0)
        let number = listener.number
        let thread = try Thread {
            let connection = Descriptor(owning: accept(number, nil, nil))
            let question = String(
                decoding: DescriptorIO.receiveAll(from: connection.number, atMost: 4096), as: UTF8.self)
            respond(question, connection.number)
        }
        defer { thread.join() }
        return try await SystemLoginHelpers(environment: [:])
            .answer(of: LoginHelper(.socket(path), timeout: timeout), to: Self.question).revealText()
    }

    @Test("a helper at a socket reads the question to its end, and answers until it closes")
    func answers() async throws {
        let answer = try await ask { question, connection in
            send("got \(question)", to: connection)
            send("more", to: connection)
        }
        #expect(answer == "got question\nmore")
    }

    @Test("an endless answer from a socket is refused, and a silent helper is a timeout")
    func hostile() async throws {
        await #expect(throws: LoginHelperError.self) {
            try await ask { _, connection in while send(String(repeating: "a", count: 4096), to: connection) {} }
        }
    }

    @Test("a helper at a socket that stays silent is a timeout")
    func silent() async throws {
        let failure = await #expect(throws: LoginHelperError.self) {
            try await ask(timeout: .milliseconds(50)) { _, connection in
                // Ends when the daemon has closed its side.
                var waiting = pollfd(fd: connection, events: Int16(POLLHUP), revents: 0)
                unsafe poll(&waiting, 1, 180_000)
            }
        }
        #expect(failure?.isTimeout == true)
    }

    @Test("a helper's socket without a listener, or that is missing, is named in the log and not to callers")
    func missing() async throws {
        for path in [directory.file("none"), "/" + String(repeating: "a", count: 200)] {
            let failure = await #expect(throws: LoginHelperError.self) {
                try await SystemLoginHelpers(environment: [:]).answer(of: LoginHelper(.socket(path)), to: Self.question)
            }
            #expect(failure?.reason.contains(path) == true && failure?.publicReason.contains("/") == false)
        }
    }
}

@discardableResult
private func send(_ text: String, to socket: Int32) -> Bool {
    DescriptorIO.sendAll(Array(text.utf8).span, on: socket)
}
