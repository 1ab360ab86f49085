// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

import Glibc
import Secrets
import System
import Testing

@testable import Credentials

@Suite("Terminal prompt", .serialized)
struct TerminalPromptTests {
    /// A pseudo-terminal. Its other end has what a user would see and type.
    private struct Terminal: ~Copyable {
        let person: Descriptor
        /// Held open: reading fails while no process has the line open.
        let line: Descriptor
        let path: String

        static func open() throws -> Terminal {
            // What posix_openpt, unlockpt and ptsname do, which Glibc's module lacks.
            let person = try Descriptor(opening: "/dev/ptmx", O_RDWR)
            let number = person.number
            var locked: Int32 = 0
            var index: Int32 = 0
            try #require(unsafe ioctl(number, 0x4004_5431, &locked) == 0)  // TIOCSPTLCK
            try #require(unsafe ioctl(number, 0x8004_5430, &index) == 0)  // TIOCGPTN
            let path = "/dev/pts/\(index)"
            return Terminal(person: person, line: try Descriptor(opening: path, O_RDWR), path: path)
        }

        /// Returns true if the terminal echoes.
        func echoes() throws -> Bool {
            var state = termios()
            try #require(unsafe tcgetattr(line.number, &state) == 0)
            return state.c_lflag & tcflag_t(ECHO) != 0
        }

        /// Reads what is shown until it ends with `text`.
        func wait(for text: String) throws -> String {
            var shown: [UInt8] = []
            var byte: UInt8 = 0
            while !shown.ends(with: text.utf8) {
                var waiting = pollfd(fd: person.number, events: Int16(POLLIN), revents: 0)
                try #require(unsafe poll(&waiting, 1, 180_000) == 1)
                try #require(unsafe read(person.number, &byte, 1) == 1)
                shown.append(byte)
            }
            return String(decoding: shown, as: UTF8.self)
        }

        func type(_ text: String) throws {
            try person.writeAll(Array(text.utf8))
        }
    }

    private typealias Answer = Result<Secret, TerminalPrompt.Failure>

    /// Prompts on a thread of its own: a test that waits for what is shown keeps one of the pool's few threads.
    private func answer(at path: String, twice: Bool = false) -> AsyncStream<Answer> {
        let (stream, continuation) = AsyncStream.makeStream(of: Answer.self)
        let prompts: @Sendable () -> Void = {
            let answer = Result { () throws(TerminalPrompt.Failure) in
                let prompt = TerminalPrompt(terminal: path)
                return twice ? try prompt.askTwice("New: ", again: "Again: ") : try prompt.ask("PIN: ")
            }
            continuation.yield(answer)
            continuation.finish()
        }
        do throws(ThreadError) {
            try startThread(prompts)
        } catch {
            Issue.record("\(error)")
            continuation.finish()
        }
        return stream
    }

    @Test("a terminal prompt hides the input and restores the echo afterwards")
    func silent() async throws {
        let terminal = try Terminal.open()
        try #require(try terminal.echoes())
        let answer = answer(at: terminal.path)
        _ = try terminal.wait(for: "PIN: ")
        #expect(try !terminal.echoes())
        try terminal.type("hunter2\n")
        #expect(try await answer.first { _ in true }?.get() == Secret("hunter2"))
        #expect(try terminal.wait(for: "\n") == "\r\n")
        #expect(try terminal.echoes())
    }

    @Test("a terminal prompt supports deletion of typed characters")
    func editing() async throws {
        let terminal = try Terminal.open()
        let answer = answer(at: terminal.path)
        _ = try terminal.wait(for: "PIN: ")
        try terminal.type("124\u{7F}34\n")
        #expect(try await answer.first { _ in true }?.get() == Secret("1234"))
    }

    @Test("a terminal prompt has no answer at the end of input, and restores the terminal")
    func endOfInput() async throws {
        let terminal = try Terminal.open()
        let answer = answer(at: terminal.path)
        _ = try terminal.wait(for: "PIN: ")
        try terminal.type("\u{4}")
        #expect(await answer.first { _ in true } == .failure(.noAnswer))
        #expect(try terminal.echoes())
    }

    @Test(
        "a terminal prompt for a new secret asks twice and compares",
        arguments: [("hunter2", true), ("hunter3", false)])
    func twice(second: String, isSame: Bool) async throws {
        let terminal = try Terminal.open()
        let answer = answer(at: terminal.path, twice: true)
        _ = try terminal.wait(for: "New: ")
        try terminal.type("hunter2\n")
        _ = try terminal.wait(for: "Again: ")
        try terminal.type(second + "\n")
        #expect(await answer.first { _ in true } == (isSame ? .success(Secret("hunter2")) : .failure(.mismatch)))
    }

    @Test("a terminal prompt restores the terminal before a signal takes effect")
    func signal() async throws {
        // SIGALRM would end this process; ignored, it is sent again without effect, and the prompt is over.
        let before = Glibc.signal(SIGALRM, SIG_IGN)
        defer { _ = Glibc.signal(SIGALRM, before) }
        let terminal = try Terminal.open()
        let answer = answer(at: terminal.path)
        _ = try terminal.wait(for: "PIN: ")
        kill(getpid(), SIGALRM)
        #expect(await answer.first { _ in true } == .failure(.noAnswer))
        #expect(try terminal.echoes())
    }

    @Test("a terminal prompt fails if there is no terminal")
    func noTerminal() {
        #expect(throws: TerminalPrompt.Failure.noTerminal) { try TerminalPrompt(terminal: "/no/such/tty").ask("PIN: ") }
        #expect(throws: TerminalPrompt.Failure.noTerminal) { try TerminalPrompt(terminal: "/dev/null").ask("PIN: ") }
    }
}

extension [UInt8] {
    /// By bytes: to String, a carriage return and a line feed are one character.
    fileprivate func ends(with tail: String.UTF8View) -> Bool {
        suffix(tail.count).elementsEqual(tail)
    }
}

@Suite("Secret input")
struct SecretInputTests {
    private let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func value(of content: [UInt8]) throws -> Secret {
        let file = try Descriptor(opening: directory.write(content, to: "input"), O_RDONLY)
        let input = SecretInput(input: file.number, terminal: "/no/such/tty")
        #expect(!input.isTyped)
        return try input.value("Value: ")
    }

    @Test("a secret from standard input is the whole input without one final newline")
    func newline() throws {
        #expect(try value(of: Array("1234\n".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234".utf8)) == Secret("1234"))
        #expect(try value(of: Array("1234\r\n".utf8)) == Secret("1234"))
        #expect(try value(of: [5, 2, 0, 10]) == Secret([5, 2, 0, 10]))
    }

    @Test("a secret from standard input is refused if empty or too long")
    func bounds() throws {
        for content in [[], Array("\n".utf8), Array(repeating: 65, count: (1 << 20) + 1)] {
            let error = #expect(throws: KeyringError.self) { try value(of: content) }
            #expect(error?.kind == .invalid)
        }
        #expect(try value(of: Array(repeating: 65, count: 1 << 20)).count == 1 << 20)
    }

    @Test("a secret prompt without a terminal fails with the alternatives")
    func noTerminal() {
        let input = SecretInput(terminal: "/no/such/tty")
        let error = #expect(throws: KeyringError.self) { try input.ask("Passphrase: ") }
        #expect(error?.kind == .noPassphrase)
        #expect(error?.reason.contains("key file") == true)
    }
}
