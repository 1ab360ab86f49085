// SPDX-License-Identifier: Apache-2.0
// Copyright the Countersign authors

internal import Glibc
package import Secrets
internal import Synchronization
internal import System

/// A prompt for a secret at the controlling terminal, without echo.
///
/// Standard input and output may be redirected.
package struct TerminalPrompt: Sendable {
    /// A reason for a prompt without an answer.
    package enum Failure: Error, Sendable, Equatable {
        /// The input ended, or has more than 4096 bytes.
        case noAnswer
        /// There is no terminal.
        case noTerminal
        /// The two answers differ.
        case mismatch
    }

    private let path: String

    /// Creates a prompt at the terminal of that path.
    package init(terminal path: String = "/dev/tty") {
        self.path = path
    }

    /// Returns the line typed after `question`.
    ///
    /// The echo is restored in any case. A signal that would end the process takes effect after that.
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

    /// Returns the answer to `question` after its repetition at `again`, because the input is invisible.
    package func askTwice(_ question: String, again: String) throws(Failure) -> Secret {
        let answer = try ask(question)
        guard try ask(again) == answer else { throw .mismatch }
        return answer
    }

    private static func ask(
        _ question: String, _ terminal: borrowing Descriptor, _ before: termios
    ) throws -> Secret {
        let number = terminal.number
        let signals = try CaughtSignals()
        var silent = before
        silent.c_lflag &= ~tcflag_t(ECHO)
        // Earlier input was echoed and meant for another program, so it is discarded.
        _ = try systemCall { unsafe tcsetattr(number, TCSAFLUSH, &silent) }
        let answer = Result { () throws(any Error) in
            try terminal.writeAll(Array(question.utf8))
            // The line break of the answer was not echoed.
            defer { try? terminal.writeAll([UInt8(ascii: "\n")]) }
            return try line(from: number, signals)
        }
        var restored = before
        unsafe tcsetattr(number, TCSAFLUSH, &restored)
        signals.release()
        return try answer.get()
    }

    /// Reads one line; throws `noAnswer` if the line does not end.
    private static func line(from terminal: Int32, _ signals: borrowing CaughtSignals) throws -> Secret {
        var builder = SecretBuilder(capacity: 4096)
        var byte: UInt8 = 0
        while builder.count <= 4096 {
            let ready = try DescriptorIO.waitUntilReadable(anyOf: [terminal, signals.descriptor], within: nil)
            if ready[1] { throw Failure.noAnswer }
            guard try systemCall({ unsafe read(terminal, &byte, 1) }) == 1 else { throw Failure.noAnswer }
            if byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") { return builder.finish() }
            builder.append(byte)
        }
        throw Failure.noAnswer
    }
}

/// The write end of the pipe that the signal handler writes to; -1 if no signals are caught.
private let wakeUp = Atomic<Int32>(-1)
/// The caught signal, or 0.
private let arrived = Atomic<Int32>(0)

/// Catches the signals that would end or stop the process while the terminal is without echo.
///
/// A signal handler may do very little, so it writes to a pipe. `release` raises the signal again after the terminal was restored.
struct CaughtSignals: ~Copyable {
    private static let numbers = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGALRM]

    private let pipe: Pipe
    private let before: [(number: Int32, action: sigaction)]

    /// A descriptor that is readable after a signal.
    var descriptor: Int32 { pipe.reader.number }

    init() throws(SystemError) {
        pipe = try Pipe()
        arrived.store(0, ordering: .sequentiallyConsistent)
        wakeUp.store(pipe.writer.number, ordering: .sequentiallyConsistent)
        before = Self.numbers.map { number in
            var action = sigaction()
            unsafe action.__sigaction_handler.sa_handler = { number in
                arrived.store(number, ordering: .sequentiallyConsistent)
                var byte: UInt8 = 0
                unsafe write(wakeUp.load(ordering: .sequentiallyConsistent), &byte, 1)
            }
            var previous = sigaction()
            unsafe sigaction(number, &action, &previous)
            return (number, previous)
        }
    }

    /// Restores the signal handlers, and raises the caught signal if there is one.
    consuming func release() {
        for (number, action) in before {
            var action = action
            unsafe sigaction(number, &action, nil)
        }
        wakeUp.store(-1, ordering: .sequentiallyConsistent)
        let number = arrived.load(ordering: .sequentiallyConsistent)
        if number != 0 { raise(number) }
    }
}
