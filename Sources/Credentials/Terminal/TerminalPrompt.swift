// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets

/// Asks a person at the terminal for a secret, without showing what is typed. It speaks to the controlling terminal itself,
/// so standard input and output can be elsewhere.
package struct TerminalPrompt: Sendable {
    /// Why there is no answer.
    package enum Failure: Error, Sendable, Equatable {
        /// The end of input, or more than 4096 bytes.
        case noAnswer
        /// There is no terminal to ask at.
        case noTerminal
        /// The two answers differ.
        case notTheSame
    }

    private let path: String

    /// A prompt at the terminal of that path.
    package init(terminal path: String = "/dev/tty") {
        self.path = path
    }

    /// The line typed after `question`. The terminal's echo is restored on every way out; a signal that would have ended the
    /// process meanwhile ends it after that.
    package func ask(_ question: String) throws(Failure) -> Secret {
        do {
            let terminal = try Descriptor(opening: path, O_RDWR)
            var before = termios()
            _ = try systemCall { [number = terminal.number] in unsafe tcgetattr(number, &before) }
            return try Self.ask(question, terminal, before)
        } catch let failure as Failure {
            throw failure
        } catch {
            throw .noTerminal
        }
    }

    /// The same answer to `question` and to `again`, for a value that nobody can see and nothing can check.
    package func askTwice(_ question: String, again: String) throws(Failure) -> Secret {
        let answer = try ask(question)
        guard try ask(again) == answer else { throw .notTheSame }
        return answer
    }

    private static func ask(
        _ question: String, _ terminal: borrowing Descriptor, _ before: termios
    ) throws -> Secret {
        let number = terminal.number
        let signals = try CaughtSignals()
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        // What was typed ahead was typed in the open, for something else: it is dropped.
        _ = try systemCall { unsafe tcsetattr(number, TCSAFLUSH, &silent) }
        let answer = Result { () throws(any Error) in
            try terminal.writeAll(Array(question.utf8))
            // The line's end was not shown either; what comes next begins a new one.
            defer { try? terminal.writeAll([UInt8(ascii: "\n")]) }
            return try line(from: number, signals)
        }
        var restored = before
        unsafe tcsetattr(number, TCSAFLUSH, &restored)
        signals.release()
        return try answer.get()
    }

    /// One line; `noAnswer` where it does not come to its end.
    private static func line(from terminal: Int32, _ signals: borrowing CaughtSignals) throws -> Secret {
        var builder = SecretBuilder(capacity: 4096)
        var byte: UInt8 = 0
        while builder.count <= 4096 {
            var waiting = [terminal, signals.descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = try systemCall { unsafe poll(&waiting, 2, -1) }
            if waiting[1].revents != 0 { throw Failure.noAnswer }
            guard try systemCall({ unsafe read(terminal, &byte, 1) }) == 1 else { throw Failure.noAnswer }
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { return builder.finish() }
            builder.append(byte)
        }
        throw Failure.noAnswer
    }
}
